// GLM 4.5: dense first layers, then experts chosen by sigmoid scores with a correction bias, and a shared one.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_glm4_moe(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.head_dim = 128;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    set_qkv_bias(model, fields.flag_or({"attention_bias"}, false));
    set_rope(fields, model, partial_rotary_dim(fields, model, 0.5));
    use_llama_names(model);
    if (fields.flag_or({"use_qk_norm"}, false)) {
        set_head_norms(model);
    }
    read_experts(fields, model, {128, 8, true});
    model.moe.intermediate = fields.size_or({"moe_intermediate_size"}, 1408);
    RoutingSpec& routing = model.moe.routing;
    routing.score = RouterScore::sigmoid;
    routing.correction_bias = true;
    routing.scale = fields.positive_or({"routed_scaling_factor"}, 1.0);
    routing.group_score = GroupScore::top_two_sum;
    read_expert_groups(fields, model);
    const auto dense = static_cast<std::size_t>(fields.number_or({"first_k_dense_replace"}, 1.0, 0.0, 1e9));
    for (std::size_t i = 0; i < std::min(dense, model.layers.size()); ++i) {
        model.layers[i].moe = false;
    }
    const std::int64_t shared = fields.size_or({"n_shared_experts"}, 1);
    model.moe.shared_intermediate = fields.ok() ? base::checked_mul(shared, model.moe.intermediate) : 0;
    use_mlp_expert_names(model);
    model.names.router_correction = "model.layers.{}.mlp.gate.e_score_correction_bias";
    use_shared_expert_names(model, "model.layers.{}.mlp.shared_experts");
    // The layers that predict further tokens follow the last one.
    model.names.ignored.push_back(fmt::format(R"(model\.layers\.{}\..*)", model.layers.size()));
}

}  // namespace shardplan::model
