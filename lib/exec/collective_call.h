// Runs one collective step: from the plan's CollectiveStep to a call of comm::Groups.
#pragma once

#include <span>

#include "comm/groups.h"
#include "plan/plan.h"

namespace shardplan::exec {

/// `views`: the local parts of the values of `block`; `staging` has step.staging_bytes.
void run_collective(comm::Groups& groups, const plan::BlockPlan& block, const plan::CollectiveStep& step,
                    std::span<const tensor::View> views, std::span<std::byte> staging);

}  // namespace shardplan::exec
