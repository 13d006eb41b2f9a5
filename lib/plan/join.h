// Neighbouring steps that a provider's module does as one: after a row-parallel linear whose sum is cut by tokens, the
// reduce-scatter, the residual add and the norm on the own tokens, and the all-gather of the result (as Megatron-Core's
// inference row-parallel linear). They stay steps of their own in the plan, with the bytes of each.
#pragma once

#include "backend/provider.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// Sets Step::joined, and the module of the steps between the collectives. The staging of both is one, booked with the
/// reduce-scatter. Steps that do not fit the pattern (other axes, a weight that is gathered between) stay as they are.
/// @pre lowered and fused
void join_steps(BlockPlan& block, const model::Block& graph, const backend::BackendSpecProvider& provider);

}  // namespace shardplan::plan
