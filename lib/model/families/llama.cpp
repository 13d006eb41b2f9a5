// Llama 1 to 3.x and the many checkpoints that use its class (Yi, TinyLlama, SmolLM, Code Llama, ...).
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_llama(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    const bool bias = fields.flag_or({"attention_bias"}, false);
    set_qkv_bias(model, bias);
    model.attention.out_bias = bias;
    model.mlp.up_bias = model.mlp.down_bias = fields.flag_or({"mlp_bias"}, false);
    model.attention.rope = read_rope(fields, partial_rotary_dim(fields, model, 1.0),
                                     {.theta = 10000.0, .max_positions = model.max_positions});
    use_llama_names(model);
}

void read_internlm(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    const bool bias = fields.flag_or({"bias"}, true);
    set_qkv_bias(model, bias);
    model.attention.out_bias = bias;
}

}  // namespace shardplan::model
