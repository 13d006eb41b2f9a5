// MPT: no biases anywhere, ALiBi, [q | k | v] in one tensor; attention fields stand in attn_config.
#include "model/alibi.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

void read_attention(FieldReader& fields, ModelSpec& model) {
    AttentionSpec& a = model.attention;
    const double bias_max = fields.positive_or({"alibi_bias_max"}, 8.0);
    a.alibi = fields.flag_or({"alibi"}, true);
    a.alibi_slopes = alibi_slopes_mpt(a.heads, bias_max);
    a.qkv_clip = fields.positive_or({"clip_qkv"}, 0.0);
    a.scale = fields.positive_or({"softmax_scale"}, a.scale);
    if (!a.alibi) {
        unsupported_feature(fields, model, {"alibi"}, "alibi = false");
    }
    if (fields.flag_or({"qk_ln"}, false)) {
        unsupported_feature(fields, model, {"qk_ln"}, "qk_ln");
    }
    if (fields.word_or({"attn_type"}, "multihead_attention") != "multihead_attention") {
        unsupported_feature(fields, model, {"attn_type"}, "another attn_type than multihead_attention");
    }
}

}  // namespace

void read_mpt(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = fields.optional_size({"expansion_ratio"}, 1024).value_or(4);
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, false);
    model.mlp.activation = "gelu";
    model.mlp.gated = false;
    model.attention.kv_heads = model.attention.heads;
    model.attention.storage = QkvStorage::concatenated;
    if (!fields.flag_or({"no_bias"}, true)) {
        unsupported_feature(fields, model, {"no_bias"}, "no_bias = false");
    }
    const ConfigValue none{ConfigValue::Object{}, fields.object().pointer};
    const ConfigValue* attention = fields.find({"attn_config"});
    if (attention != nullptr && !attention->is_object()) {
        fields.wrong_type(*attention, "an object");
        attention = nullptr;
    }
    FieldReader inner(attention != nullptr ? *attention : none, fields.diagnostics());
    read_attention(inner, model);
    if (!inner.ok()) {
        fields.fail();
    }
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.qkv = "transformer.blocks.{}.attn.Wqkv";
    n.out = "transformer.blocks.{}.attn.out_proj";
    n.up = "transformer.blocks.{}.ffn.up_proj";
    n.down = "transformer.blocks.{}.ffn.down_proj";
    n.pre_attention_norm = "transformer.blocks.{}.norm_1";
    n.pre_mlp_norm = "transformer.blocks.{}.norm_2";
    n.final_norm = "transformer.norm_f";
    n.lm_head = "lm_head";
}

}  // namespace shardplan::model
