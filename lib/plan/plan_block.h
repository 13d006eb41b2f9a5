// Plans one block from its ops to the memory schedule. Where an axis cuts queries and keys, every way of attention is
// planned, and the best is kept with the figures of all of them.
#pragma once

#include "plan/lower.h"

namespace shardplan::plan {

enum class Goal : std::uint8_t {
    wire_bytes,  ///< the fewest bytes on the wire, then the least memory
    memory,      ///< the least memory, then the fewest bytes
};

/// `context.cp_comm_type` is not looked at: the job's option decides, or else the goal.
BlockPlan plan_block(int block, const LoweringContext& context, Goal goal, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
