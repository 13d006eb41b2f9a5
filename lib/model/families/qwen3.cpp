// Qwen 3: RMS norms over the heads of q and k, no biases unless asked for.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_qwen3(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 32;
    defaults.head_dim = 128;
    defaults.max_positions = 32768;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_rope(fields, model, model.attention.head_dim);
    read_qwen_windows(fields, model);
    use_llama_names(model);
    set_head_norms(model);
}

}  // namespace shardplan::model
