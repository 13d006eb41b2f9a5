// Phi 1, 1.5 and 2: attention and MLP in parallel from one LayerNorm; two forms of names.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

void set_phi_layout(ModelSpec& model) {
    model.layout = BlockLayout::parallel;
    model.shared_norm = true;
    model.mlp.gated = false;
    model.lm_head_bias = true;
    set_linear_bias(model, true);
}

}  // namespace

void read_phi(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_new");
    set_phi_layout(model);
    set_rope(fields, model, partial_rotary_dim(fields, model, 0.5));
    use_llama_names(model);
    TensorNames& n = model.names;
    n.out = "model.layers.{}.self_attn.dense";
    n.up = "model.layers.{}.mlp.fc1";
    n.down = "model.layers.{}.mlp.fc2";
    n.final_norm = "model.final_layernorm";
    if (fields.flag_or({"qk_layernorm"}, false)) {
        set_head_norms(model);
        n.q_norm = "model.layers.{}.self_attn.q_layernorm";
        n.k_norm = "model.layers.{}.self_attn.k_layernorm";
    }
}

void read_phi_msft(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 4;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_new");
    set_phi_layout(model);
    set_rope(fields, model, fields.size_or({"rotary_dim"}, 32));
    model.attention.storage = QkvStorage::concatenated;
    TensorNames& n = model.names;
    n.embedding = "transformer.embd.wte";
    n.qkv = "transformer.h.{}.mixer.Wqkv";
    n.out = "transformer.h.{}.mixer.out_proj";
    n.up = "transformer.h.{}.mlp.fc1";
    n.down = "transformer.h.{}.mlp.fc2";
    n.pre_attention_norm = "transformer.h.{}.ln";
    n.final_norm = "lm_head.ln";
    n.lm_head = "lm_head.linear";
}

}  // namespace shardplan::model
