// Step 3.5 and 3.7 (text): norms with 1 + w, also over each head of q and k, windows in three of four layers, stacked
// experts chosen by sigmoid scores with a correction bias, and a shared one. What their configs may say beyond that -
// other heads in layers with a window, a gate on each head, clamped activations - is refused.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

void refuse_further_features(FieldReader& fields, const ModelSpec& model) {
    if (fields.flag_or({"use_head_wise_attn_gate"}, false)) {
        unsupported_feature(fields, model, {"use_head_wise_attn_gate"},
                            "a gate on each head (use_head_wise_attn_gate)");
    }
    for (const std::string_view key : {"attention_other_setting", "partial_rotary_factors", "swiglu_limits",
                                       "swiglu_limits_shared", "moe_layers_enum"}) {
        if (fields.find({key}) != nullptr) {
            unsupported_feature(fields, model, {key}, key);
        }
    }
    if (fields.word_or({"scoring_func", "moe_router_activation"}, "sigmoid") != "sigmoid") {
        unsupported_feature(fields, model, {"scoring_func", "moe_router_activation"}, "another score than sigmoid");
    }
    if (fields.ok()) {
        fields.diagnostics().report("SP2007",
                                    "the config names neither use_head_wise_attn_gate nor attention_other_setting: no "
                                    "gates on heads and the same heads in every layer are assumed",
                                    fields.pointer({"model_type"}),
                                    "compare with the checkpoint: g_proj tensors are such gates");
    }
}

void read_step_experts(FieldReader& fields, ModelSpec& model) {
    read_experts(fields, model, {288, 8, true});
    MoeSpec& moe = model.moe;
    moe.intermediate = fields.size_or({"moe_intermediate_size"}, 1280);
    moe.shared_intermediate = fields.size_or({"share_expert_dim", "share_expert_dims"}, moe.intermediate);
    moe.routing.score = RouterScore::sigmoid;
    moe.routing.correction_bias = fields.flag_or({"use_moe_router_bias"}, true);
    moe.routing.scale = fields.positive_or({"moe_router_scaling_factor"}, 3.0);
    const auto dense = static_cast<std::size_t>(fields.number_or({"first_k_dense_replace"}, 3.0, 0.0, 1e9));
    for (std::size_t i = 0; i < std::min(dense, model.layers.size()); ++i) {
        model.layers[i].moe = false;
    }
    TensorNames& n = model.names;
    n.router = "model.layers.{}.moe.gate";
    n.router_correction = "model.layers.{}.moe.router_bias";
    n.expert_gate = "model.layers.{}.moe.gate_proj";
    n.expert_up = "model.layers.{}.moe.up_proj";
    n.expert_down = "model.layers.{}.moe.down_proj";
    use_shared_expert_names(model, "model.layers.{}.share_expert");
}

}  // namespace

void read_step3p(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = fields.size_or({"num_attention_groups"}, 8);
    defaults.head_dim = 128;
    defaults.max_positions = 65536;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    model.norm.weight_offset = 1.0;
    read_activation(fields, model, "silu");
    set_rope(fields, model, model.attention.head_dim);
    set_windows(fields, model, read_window(fields, 512), [](std::int64_t layer) { return layer % 4 != 0; });
    use_llama_names(model);
    set_head_norms(model);
    read_step_experts(fields, model);
    refuse_further_features(fields, model);
    // The layers that predict further tokens follow the last one.
    const auto next = static_cast<std::int64_t>(model.layers.size());
    const std::int64_t predicting = static_cast<std::int64_t>(fields.number_or({"num_nextn_predict_layers"}, 0, 0, 64));
    for (std::int64_t i = next; i < next + predicting; ++i) {
        model.names.ignored.push_back(fmt::format(R"(model\.layers\.{}\..*)", i));
    }
    if (predicting > 0) {
        model.notes.push_back(fmt::format("{} layers that predict further tokens are left out", predicting));
    }
}

}  // namespace shardplan::model
