// Sums over the plan: collectives by kind and axes, parameters, flops.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace shardplan::plan {

/// Collectives of one step of the model, grouped by kind and axes, slices left out.
std::vector<CollectiveTotal> collective_totals(const Plan& plan);

Totals model_totals(const Plan& plan);

/// How often a block runs in one step of the model.
std::int64_t instances(const BlockPlan& block);

}  // namespace shardplan::plan
