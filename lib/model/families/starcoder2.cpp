// StarCoder 2: LayerNorms and biases, grouped keys, a plain MLP.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_starcoder2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 2;
    defaults.max_positions = 4096;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_pytorch_tanh");
    set_linear_bias(model, fields.flag_or({"use_bias"}, true));
    model.mlp.gated = false;
    if (fields.word_or({"norm_type"}, "layer_norm") != "layer_norm") {
        unsupported_feature(fields, model, {"norm_type"}, "another norm_type than layer_norm");
    }
    if (fields.word_or({"mlp_type"}, "default") != "default") {
        unsupported_feature(fields, model, {"mlp_type"}, "another mlp_type than default");
    }
    set_rope(fields, model, model.attention.head_dim);
    set_windows(fields, model, read_window(fields, 0), [](std::int64_t) { return true; });
    use_llama_names(model);
    model.names.up = "model.layers.{}.mlp.c_fc";
    model.names.down = "model.layers.{}.mlp.c_proj";
}

}  // namespace shardplan::model
