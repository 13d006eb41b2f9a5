// Llama 1 to 3.x and the many checkpoints that use its class (Yi, TinyLlama, SmolLM, Code Llama, ...).
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_llama(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_mlp_bias(model, fields.flag_or({"mlp_bias"}, false));
    set_rope(fields, model, partial_rotary_dim(fields, model, 1.0));
    use_llama_names(model);
}

}  // namespace shardplan::model
