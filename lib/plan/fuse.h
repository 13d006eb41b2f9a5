// What a provider with fuse_layernorm_and_linear() computes in one module: the norm before a column-parallel linear,
// and all linears of one slot that read the same input (query, key and value; gate and up) in one pass over it,
// biases included. Works on lowered steps: nothing about placement changes, only the order of weight gathers does.
#pragma once

#include "plan/plan.h"

namespace shardplan::plan {

/// Where a collective lies between norm and linear (sequence parallelism) both keep their steps, under the one module's
/// name, as in Megatron's LayerNormColumnParallelLinear: norm on the shard, all-gather, matmul.
void fuse_steps(BlockPlan& block, const model::Block& graph, const backend::BackendSpecProvider& provider);

}  // namespace shardplan::plan
