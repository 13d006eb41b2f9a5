// StableLM: LayerNorms, partial rope, optional q, k, v biases and parallel residual.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_stablelm(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 32;
    defaults.max_positions = 4096;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "silu");
    set_qkv_bias(model, fields.flag_or({"use_qkv_bias"}, false));
    set_rope(fields, model, partial_rotary_dim(fields, model, 0.25));
    use_llama_names(model);
    if (fields.flag_or({"use_parallel_residual"}, false)) {
        model.layout = BlockLayout::parallel;
        model.shared_norm = true;
    }
    if (fields.flag_or({"qk_layernorm"}, false)) {
        unsupported_feature(fields, model, {"qk_layernorm"}, "qk_layernorm (a norm of its own for each head)");
    }
}

}  // namespace shardplan::model
