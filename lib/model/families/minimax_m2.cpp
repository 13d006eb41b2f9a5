// MiniMax M2: mixtral's names, norms over all heads of q and k together, partial positions, experts chosen by sigmoid
// scores with a correction bias. Text-01 and M1, with lightning attention, are other models.
#include <algorithm>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

/// attn_type_list: 1 = softmax attention in every layer.
void check_attention(FieldReader& fields, const ModelSpec& model) {
    const ConfigValue* types = fields.find({"attn_type_list"});
    if (types == nullptr) {
        return;
    }
    const ConfigValue::Array* list = types->array();
    const bool softmax = list != nullptr && std::all_of(list->begin(), list->end(), [](const ConfigValue& type) {
                             return type.integer() != nullptr && *type.integer() == 1;
                         });
    if (!softmax) {
        unsupported_feature(fields, model, {"attn_type_list"}, "attention other than softmax attention");
    }
}

}  // namespace

void read_minimax_m2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.head_dim = 128;
    defaults.max_positions = 196608;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    check_attention(fields, model);
    set_rope(fields, model, fields.size_or({"rotary_dim"}, std::min<std::int64_t>(64, model.attention.head_dim)), 5e6);
    use_llama_names(model);
    if (fields.flag_or({"use_qk_norm"}, true)) {
        set_head_norms(model);
        model.attention.qk_norm = QkNorm::full;
        if (fields.word_or({"qk_norm_type"}, "per_layer") != "per_layer") {
            unsupported_feature(fields, model, {"qk_norm_type"}, "another qk_norm_type than per_layer");
        }
    }
    read_experts(fields, model, {256, 8, true});
    model.moe.routing.normalise = true;
    if (fields.word_or({"scoring_func"}, "sigmoid") != "sigmoid") {
        unsupported_feature(fields, model, {"scoring_func"}, "another scoring_func than sigmoid");
    }
    model.moe.routing.score = RouterScore::sigmoid;
    model.moe.routing.correction_bias = fields.flag_or({"use_routing_bias"}, true);
    use_mixtral_expert_names(model);
    model.names.router_correction = "model.layers.{}.block_sparse_moe.e_score_correction_bias";
    model.names.ignored.emplace_back(R"(model\.mtp_modules\..*)");
}

}  // namespace shardplan::model
