// GLM-4 (glm and glm4): interleaved partial rope, [gate | up] in one tensor; glm4 also norms after the sublayers.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_glm(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 2;
    defaults.head_dim = 128;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1.5625e-7, false);
    read_activation(fields, model, "silu");
    set_qkv_bias(model, fields.flag_or({"attention_bias"}, false));
    model.mlp.fused_gate_up = true;
    set_rope(fields, model, partial_rotary_dim(fields, model, 0.5));
    model.attention.rope.interleaved = true;
    use_llama_names(model);
    model.names.gate_up = "model.layers.{}.mlp.gate_up_proj";
}

void read_glm4(FieldReader& fields, ModelSpec& model) {
    read_glm(fields, model);
    model.names.post_attention_norm = "model.layers.{}.post_self_attn_layernorm";
    model.names.post_mlp_norm = "model.layers.{}.post_mlp_layernorm";
}

}  // namespace shardplan::model
