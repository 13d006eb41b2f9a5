// Lifetimes and memory: where each value of a block is used last, and the peaks that follow. The executor allocates
// at the defining step and frees at the last use, so predicted and allocated bytes are the same numbers.
#pragma once

#include "plan/plan.h"

namespace shardplan::plan {

/// Fills Step::last_use and the peaks of a lowered block. The block's input is live from the start, its output at the
/// end.
void schedule_memory(BlockPlan& block);

/// Of the stage that needs the most: parameters and caches, and the largest peak of any block.
MemoryPerDevice memory_per_device(const Plan& plan);

}  // namespace shardplan::plan
