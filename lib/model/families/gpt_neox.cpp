// GPT-NeoX and Pythia: partial rope, q, k, v of each head together, usually a parallel residual.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gpt_neox(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, true));
    set_mlp_bias(model, true);
    model.mlp.gated = false;
    model.attention.kv_heads = model.attention.heads;
    model.attention.storage = QkvStorage::grouped;
    if (fields.flag_or({"use_parallel_residual"}, true)) {
        model.layout = BlockLayout::parallel;
    }
    set_rope(fields, model, partial_rotary_dim(fields, model, 0.25));
    TensorNames& n = model.names;
    n.embedding = "gpt_neox.embed_in";
    n.qkv = "gpt_neox.layers.{}.attention.query_key_value";
    n.out = "gpt_neox.layers.{}.attention.dense";
    n.up = "gpt_neox.layers.{}.mlp.dense_h_to_4h";
    n.down = "gpt_neox.layers.{}.mlp.dense_4h_to_h";
    n.pre_attention_norm = "gpt_neox.layers.{}.input_layernorm";
    n.pre_mlp_norm = "gpt_neox.layers.{}.post_attention_layernorm";
    n.final_norm = "gpt_neox.final_layer_norm";
    n.lm_head = "embed_out";
    n.ignored.emplace_back(R"(gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias))");
}

/// Open Assistant's: one score per token in place of the vocabulary.
void read_gpt_neox_reward_model(FieldReader& fields, ModelSpec& model) {
    read_gpt_neox(fields, model);
    model.tied_embeddings = false;
    model.scores = 1;
    model.lm_head_bias = true;
    model.names.lm_head = "out_proj";
}

}  // namespace shardplan::model
