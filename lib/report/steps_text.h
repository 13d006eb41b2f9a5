// The steps of each block: what every device computes on its local shapes, and every collective with its bytes.
#pragma once

#include <iosfwd>
#include <string>

#include "plan/plan.h"
#include "report/style.h"

namespace shardplan::report {

/// "q_proj"; "input_norm+q_proj+k_proj" for a fused step.
std::string op_name(const plan::Plan& plan, const plan::BlockPlan& block, const plan::ComputeStep& step);

void write_block_text(std::ostream& out, const plan::Plan& plan, const plan::BlockPlan& block, std::int64_t uses,
                      const Style& style);

}  // namespace shardplan::report
