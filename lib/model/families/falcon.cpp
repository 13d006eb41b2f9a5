// Falcon: multi-query (7b), grouped (40b, 180b) or one key per head with ALiBi (rw); RefinedWeb is the old name.
#include "model/alibi.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

void set_heads(FieldReader& fields, ModelSpec& model) {
    AttentionSpec& a = model.attention;
    const bool old_40b = model.model_type == "RefinedWeb" && fields.find({"n_head_kv", "num_kv_heads"}) != nullptr;
    const bool grouped = fields.flag_or({"new_decoder_architecture"}, old_40b);
    const bool multi_query = fields.flag_or({"multi_query"}, true);
    if (!grouped) {
        a.kv_heads = multi_query ? 1 : a.heads;
    }
    a.storage = !grouped && multi_query ? QkvStorage::concatenated : QkvStorage::grouped;
    const double norms = fields.number_or({"num_ln_in_parallel_attn"}, grouped ? 2.0 : 1.0, 1.0, 2.0);
    TensorNames& n = model.names;
    n.pre_attention_norm = "transformer.h.{}.input_layernorm";
    n.pre_mlp_norm = "transformer.h.{}.post_attention_layernorm";
    if (!fields.flag_or({"parallel_attn"}, true) && !grouped) {
        return;
    }
    model.layout = BlockLayout::parallel;
    model.shared_norm = !grouped || norms == 1.0;
    if (!model.shared_norm) {
        n.pre_attention_norm = "transformer.h.{}.ln_attn";
        n.pre_mlp_norm = "transformer.h.{}.ln_mlp";
    }
}

/// Slopes rounded to bfloat16, as the published code computes them.
void set_alibi(AttentionSpec& a) {
    a.alibi = true;
    a.alibi_bf16 = true;
    a.alibi_slopes = alibi_slopes(a.heads);
    for (float& slope : a.alibi_slopes) {
        slope = tensor::float_from_bf16(tensor::bf16_from_float(slope));
    }
}

}  // namespace

void read_falcon(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 4;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    model.mlp.activation = known_activation(fields, {"activation", "hidden_act"}, "gelu");
    model.mlp.gated = false;
    set_linear_bias(model, fields.flag_or({"bias"}, false));
    set_heads(fields, model);
    if (fields.flag_or({"apply_residual_connection_post_layernorm"}, false)) {
        unsupported_feature(fields, model, {"apply_residual_connection_post_layernorm"},
                            "apply_residual_connection_post_layernorm");
    }
    if (fields.flag_or({"alibi"}, false)) {
        set_alibi(model.attention);
    } else {
        set_rope(fields, model, model.attention.head_dim);
    }
    TensorNames& n = model.names;
    n.embedding = "transformer.word_embeddings";
    n.qkv = "transformer.h.{}.self_attention.query_key_value";
    n.out = "transformer.h.{}.self_attention.dense";
    n.up = "transformer.h.{}.mlp.dense_h_to_4h";
    n.down = "transformer.h.{}.mlp.dense_4h_to_h";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
}

}  // namespace shardplan::model
