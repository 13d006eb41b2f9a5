// What the configs of mixtures of experts have alike.
#pragma once

#include <cstdint>
#include <string>

#include "model/field_reader.h"
#include "model/model_spec.h"

namespace shardplan::model {

struct MoeDefaults {
    std::int64_t experts = 0;  ///< of an absent field
    std::int64_t top_k = 0;
    bool normalise = false;  ///< of an absent norm_topk_prob
};

/// The number of experts under all its names, num_experts_per_tok and norm_topk_prob; every layer gets experts.
/// SP2003 for more experts per token than there are.
void read_experts(FieldReader& fields, ModelSpec& model, const MoeDefaults& defaults);

/// Experts in every decoder_sparse_step-th layer that mlp_only_layers does not name (qwen).
void read_sparse_layers(FieldReader& fields, ModelSpec& model);

/// n_group and topk_group, with the values of absent ones; SP2003 where they do not fit the experts. @pre read_experts
void read_expert_groups(FieldReader& fields, ModelSpec& model, std::int64_t groups = 1, std::int64_t group_top_k = 1);

/// model.layers.{}.mlp.gate, .mlp.experts.{expert}.gate_proj ...
void use_mlp_expert_names(ModelSpec& model);
/// model.layers.{}.block_sparse_moe.gate, .block_sparse_moe.experts.{expert}.w1 ...
void use_mixtral_expert_names(ModelSpec& model);
/// gate_proj, up_proj and down_proj of one more MLP: "model.layers.{}.mlp.shared_expert".
void use_shared_expert_names(ModelSpec& model, const std::string& module);

}  // namespace shardplan::model
