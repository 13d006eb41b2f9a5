// Runs one collective step: from the plan's CollectiveStep to a call of comm::Groups.
#pragma once

#include <span>

#include "comm/groups.h"
#include "plan/plan.h"

namespace shardplan::exec {

/// `in` and `out` are the local parts of the step's values in `block`; `staging` has step.staging_bytes.
void run_collective(comm::Groups& groups, const plan::BlockPlan& block, const plan::CollectiveStep& step,
                    const tensor::ConstView& in, const tensor::View& out, std::span<std::byte> staging);

}  // namespace shardplan::exec
