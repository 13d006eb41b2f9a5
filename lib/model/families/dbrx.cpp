// DBRX: LayerNorms without bias, [q | k | v] in one clipped tensor, experts flat in three tensors; the fields of
// attention and experts stand in attn_config and ffn_config.
#include <fmt/format.h>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

void read_attention(FieldReader& fields, FieldReader& outer, ModelSpec& model) {
    AttentionSpec& a = model.attention;
    a.kv_heads = fields.size_or({"kv_n_heads"}, 1);
    a.qkv_clip = fields.positive_or({"clip_qkv"}, 0.0);
    a.storage = QkvStorage::concatenated;
    if (outer.ok() && fields.ok() && a.heads % a.kv_heads != 0) {
        fields.report("SP2003", {"kv_n_heads"},
                      fmt::format("{} key/value heads do not divide the {} attention heads", a.kv_heads, a.heads),
                      "set kv_n_heads to a divisor of n_heads");
    }
    const double theta = fields.positive_or({"rope_theta"}, 10000.0);
    if (outer.ok() && fields.ok()) {
        set_rope(outer, model, a.head_dim, theta);
    }
}

std::string activation_of(FieldReader& fields) {
    const ConfigValue* function = fields.find({"ffn_act_fn"});
    if (function == nullptr) {
        return "silu";
    }
    if (!function->is_object()) {
        fields.wrong_type(*function, "an object with a name");
        return "silu";
    }
    FieldReader inner(*function, fields.diagnostics());
    const std::string name = known_activation(inner, {"name"}, "silu");
    if (!inner.ok()) {
        fields.fail();
    }
    return name;
}

void read_ffn(FieldReader& fields, ModelSpec& model) {
    MoeSpec& moe = model.moe;
    moe.intermediate = model.mlp.intermediate = fields.size_or({"ffn_hidden_size"}, 3584);
    moe.experts = fields.size_or({"moe_num_experts"}, 4);
    moe.routing.top_k = fields.size_or({"moe_top_k"}, 1);
    if (fields.ok() && moe.routing.top_k > moe.experts) {
        fields.report("SP2003", {"moe_top_k"},
                      fmt::format("{} experts per token are more than the {} experts", moe.routing.top_k, moe.experts));
    }
    const FieldReader::Keys power = {"moe_normalize_expert_weights"};
    moe.routing.normalise = !fields.is_null(power);
    if (fields.number_or(power, 1.0, 0.0, 1e9) != 1.0) {
        unsupported_feature(fields, model, power, "moe_normalize_expert_weights other than 1");
    }
    moe.storage = ExpertStorage::flat;
    model.mlp.activation = activation_of(fields);
    for (LayerSpec& layer : model.layers) {
        layer.moe = true;
    }
}

/// Calls read(reader) with the object under `key`, or with an empty one.
template <typename Read>
void read_part(FieldReader& fields, std::string_view key, Read read) {
    const ConfigValue none{ConfigValue::Object{}, fields.object().pointer};
    const ConfigValue* part = fields.find({key});
    if (part != nullptr && !part->is_object()) {
        fields.wrong_type(*part, "an object");
        part = nullptr;
    }
    FieldReader inner(part != nullptr ? *part : none, fields.diagnostics());
    read(inner);
    if (!inner.ok()) {
        fields.fail();
    }
}

}  // namespace

void read_dbrx(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 1;  // stands in ffn_config
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, false);
    read_part(fields, "attn_config", [&](FieldReader& inner) { read_attention(inner, fields, model); });
    read_part(fields, "ffn_config", [&](FieldReader& inner) { read_ffn(inner, model); });
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.qkv = "transformer.blocks.{}.norm_attn_norm.attn.Wqkv";
    n.out = "transformer.blocks.{}.norm_attn_norm.attn.out_proj";
    n.pre_attention_norm = "transformer.blocks.{}.norm_attn_norm.norm_1";
    n.pre_mlp_norm = "transformer.blocks.{}.norm_attn_norm.norm_2";
    n.router = "transformer.blocks.{}.ffn.router.layer";
    n.expert_gate = "transformer.blocks.{}.ffn.experts.mlp.w1";
    n.expert_up = "transformer.blocks.{}.ffn.experts.mlp.v1";
    n.expert_down = "transformer.blocks.{}.ffn.experts.mlp.w2";
    n.final_norm = "transformer.norm_f";
    n.lm_head = "lm_head";
}

}  // namespace shardplan::model
