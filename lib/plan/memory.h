// Lifetimes and memory: where each value of a block is used last, and the peaks that follow. The executor counts memory
// as used from the defining step to the last use, so predicted and counted peaks are the same numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace shardplan::plan {

inline constexpr std::size_t never = static_cast<std::size_t>(-1);

/// For each value with memory of its own the last step that touches it or one of its aliases; steps.size() for what
/// stays, never for those that are not computed.
std::vector<std::size_t> last_steps(const BlockPlan& block);

/// Fills Step::last_use, the peaks and the arena of a lowered block. The block's input is live from the start, its
/// output at the end.
void schedule_memory(BlockPlan& block);

/// Of the stage that needs the most: parameters and caches, and the largest peak of any block.
MemoryPerDevice memory_per_device(const Plan& plan);

}  // namespace shardplan::plan
