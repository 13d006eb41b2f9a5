// From what the executor found to what the report prints.
#pragma once

#include "arguments.h"
#include "exec/verify.h"
#include "plan/plan.h"
#include "report/run_summary.h"

namespace shardplan::app {

report::RunSummary summarise(const plan::Plan& plan, const exec::RunReport& run, const Arguments& arguments,
                             int threads, std::uint64_t plan_hash);

}  // namespace shardplan::app
