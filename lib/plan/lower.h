// Lowering: from the ops of one block and the layouts asked of its tensors to steps on local shapes and collectives.
// For each op the admissible compute layout whose reshards move the fewest bytes is taken (ties: fewer collectives,
// less work per device, then the order of enumeration), and the reshards are inserted. There is no rule for any
// particular parallelism: Megatron's all-reduce, sequence parallelism, ZeRO-3 gathers and merged partial softmax all
// follow.
#pragma once

#include "plan/activation_specs.h"
#include "plan/plan.h"

namespace shardplan::plan {

struct LoweringContext {
    const Job& job;
    const model::Graph& graph;
    const RefinedMesh& mesh;
    const std::vector<StoredTensor>& stored;
    const backend::BackendSpecProvider& provider;
    partition::Resharder& resharder;
    ActivationSpecs& asks;
    const TokenOrder& token_order;
    /// The way of attention with sequence axes; automatic: the fewest bytes of whatever the factors allow.
    CpCommType cp_comm_type = CpCommType::automatic;
};

/// Lowers one block; last uses and memory are not filled in yet (see memory.h).
BlockPlan lower_block(int block, const LoweringContext& context, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
