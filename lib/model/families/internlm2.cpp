// InternLM 2: the query heads of each key/value head stand before it in one tensor.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_internlm2(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"bias"}, true));
    set_rope(fields, model, model.attention.head_dim);
    model.attention.storage = QkvStorage::grouped;
    TensorNames& n = model.names;
    n.embedding = "model.tok_embeddings";
    n.qkv = "model.layers.{}.attention.wqkv";
    n.out = "model.layers.{}.attention.wo";
    n.gate = "model.layers.{}.feed_forward.w1";
    n.up = "model.layers.{}.feed_forward.w3";
    n.down = "model.layers.{}.feed_forward.w2";
    n.pre_attention_norm = "model.layers.{}.attention_norm";
    n.pre_mlp_norm = "model.layers.{}.ffn_norm";
    n.final_norm = "model.norm";
    n.lm_head = "output";
}

}  // namespace shardplan::model
