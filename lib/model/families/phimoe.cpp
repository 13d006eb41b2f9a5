// Phi 3.5 MoE: mixtral with biases, LayerNorms and the router of SparseMixer.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

/// Its own factors of the attention take the place of those of longrope.
void read_mscale(FieldReader& fields, ModelSpec& model) {
    const ConfigValue* scaling = fields.find({"rope_scaling"});
    if (scaling == nullptr || !scaling->is_object() || scaling->find("short_mscale") == nullptr) {
        return;
    }
    FieldReader inner(*scaling, fields.diagnostics());
    const double factor = inner.positive_or({"short_mscale"}, 1.0);
    if (inner.positive_or({"long_mscale"}, factor) != factor) {
        unsupported_feature(inner, model, {"long_mscale"}, "a long_mscale other than short_mscale");
    }
    model.attention.rope.attention_factor = factor;
    if (!inner.ok()) {
        fields.fail();
    }
}

}  // namespace

void read_phimoe(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    model.lm_head_bias = fields.flag_or({"lm_head_bias"}, false);
    set_rope(fields, model, model.attention.head_dim, 1e6);
    read_mscale(fields, model);
    set_windows(fields, model, read_window(fields, 0), [](std::int64_t) { return true; });
    use_llama_names(model);
    read_experts(fields, model, {16, 2, false});
    RoutingSpec& routing = model.moe.routing;
    routing.normalise = false;
    routing.score = RouterScore::sparse_mixer;
    routing.jitter = fields.number_or({"router_jitter_noise"}, 0.01, 0.0, 1.0);
    use_mixtral_expert_names(model);
}

}  // namespace shardplan::model
