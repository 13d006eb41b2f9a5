// BLOOM: ALiBi, a norm after the embedding, q, k, v of each head together.
#include "model/alibi.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_bloom(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 4;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    // Written out in the published code: the tanh form.
    model.mlp.activation = "gelu_new";
    model.mlp.gated = false;
    set_linear_bias(model, true);
    AttentionSpec& a = model.attention;
    a.kv_heads = a.heads;
    a.storage = QkvStorage::grouped;
    a.alibi = true;
    a.alibi_slopes = alibi_slopes(a.heads);
    if (fields.flag_or({"apply_residual_connection_post_layernorm"}, false)) {
        unsupported_feature(fields, model, {"apply_residual_connection_post_layernorm"},
                            "apply_residual_connection_post_layernorm");
    }
    TensorNames& n = model.names;
    n.embedding = "transformer.word_embeddings";
    n.embedding_norm = "transformer.word_embeddings_layernorm";
    n.qkv = "transformer.h.{}.self_attention.query_key_value";
    n.out = "transformer.h.{}.self_attention.dense";
    n.up = "transformer.h.{}.mlp.dense_h_to_4h";
    n.down = "transformer.h.{}.mlp.dense_4h_to_h";
    n.pre_attention_norm = "transformer.h.{}.input_layernorm";
    n.pre_mlp_norm = "transformer.h.{}.post_attention_layernorm";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
    n.optional_prefix = "transformer.";
}

}  // namespace shardplan::model
