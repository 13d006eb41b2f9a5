#include "model/families/moe_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan::model {

void read_experts(FieldReader& fields, ModelSpec& model, const MoeDefaults& defaults) {
    MoeSpec& moe = model.moe;
    const FieldReader::Keys top_k = {"num_experts_per_tok", "num_experts_per_token", "moe_top_k"};
    moe.experts = fields.size_or({"num_local_experts", "num_experts", "n_routed_experts"}, defaults.experts);
    moe.routing.top_k = fields.size_or(top_k, defaults.top_k);
    moe.routing.normalise = fields.flag_or({"norm_topk_prob"}, defaults.normalise);
    moe.intermediate = model.mlp.intermediate;
    if (fields.ok() && moe.routing.top_k > moe.experts) {
        fields.report("SP2003", top_k,
                      fmt::format("{} experts per token are more than the {} experts", moe.routing.top_k, moe.experts),
                      fmt::format("set num_experts_per_tok to at most {}", moe.experts));
    }
    for (LayerSpec& layer : model.layers) {
        layer.moe = true;
    }
}

void read_sparse_layers(FieldReader& fields, ModelSpec& model) {
    const std::int64_t step = fields.size_or({"decoder_sparse_step"}, 1);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        model.layers[i].moe = (static_cast<std::int64_t>(i) + 1) % step == 0;
    }
    const ConfigValue* dense = fields.find({"mlp_only_layers"});
    if (dense == nullptr) {
        return;
    }
    if (dense->array() == nullptr) {
        fields.wrong_type(*dense, "a list of layers");
        return;
    }
    for (const ConfigValue& value : *dense->array()) {
        const std::int64_t* layer = value.integer();
        if (layer == nullptr || *layer < 0 || *layer >= model.layer_count()) {
            fields.report("SP1006", {"mlp_only_layers"},
                          fmt::format("mlp_only_layers names {}, which is none of the {} layers", describe(value),
                                      model.layer_count()));
            return;
        }
        model.layers[static_cast<std::size_t>(*layer)].moe = false;
    }
}

void read_expert_groups(FieldReader& fields, ModelSpec& model, std::int64_t groups, std::int64_t group_top_k) {
    RoutingSpec& routing = model.moe.routing;
    routing.groups = fields.size_or({"n_group"}, groups);
    routing.group_top_k = fields.size_or({"topk_group"}, group_top_k);
    if (!fields.ok()) {
        return;
    }
    if (model.moe.experts % routing.groups != 0) {
        fields.report("SP2003", {"n_group"},
                      fmt::format("{} groups do not divide the {} experts", routing.groups, model.moe.experts));
    } else if (routing.group_top_k > routing.groups ||
               routing.top_k > model.moe.experts / routing.groups * routing.group_top_k) {
        fields.report("SP2003", {"topk_group"},
                      fmt::format("{} of {} groups of experts do not hold the {} experts of a token",
                                  routing.group_top_k, routing.groups, routing.top_k));
    }
}

void use_mlp_expert_names(ModelSpec& model) {
    TensorNames& n = model.names;
    n.router = "model.layers.{}.mlp.gate";
    n.expert_gate = "model.layers.{}.mlp.experts.{expert}.gate_proj";
    n.expert_up = "model.layers.{}.mlp.experts.{expert}.up_proj";
    n.expert_down = "model.layers.{}.mlp.experts.{expert}.down_proj";
}

void use_mixtral_expert_names(ModelSpec& model) {
    TensorNames& n = model.names;
    n.router = "model.layers.{}.block_sparse_moe.gate";
    n.expert_gate = "model.layers.{}.block_sparse_moe.experts.{expert}.w1";
    n.expert_up = "model.layers.{}.block_sparse_moe.experts.{expert}.w3";
    n.expert_down = "model.layers.{}.block_sparse_moe.experts.{expert}.w2";
}

void use_shared_expert_names(ModelSpec& model, const std::string& module) {
    TensorNames& n = model.names;
    n.shared_gate = module + ".gate_proj";
    n.shared_up = module + ".up_proj";
    n.shared_down = module + ".down_proj";
}

}  // namespace shardplan::model
