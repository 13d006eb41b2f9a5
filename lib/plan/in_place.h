// Elementwise steps, and sums over ranks, whose operand nobody needs any more write their result over it: less memory,
// and fewer bytes copied. The residual stream then stays in one place from the first layer to the last.
#pragma once

#include "plan/plan.h"

namespace shardplan::plan {

/// Makes the results of such steps aliases of the operand's memory. @pre lowered and fused
void work_in_place(BlockPlan& block, const model::Block& graph);

}  // namespace shardplan::plan
