// From what the executor found to what the report prints.
#pragma once

#include "arguments.h"
#include "exec/verify.h"
#include "plan/plan.h"
#include "report/run_summary.h"
#include "report/trace_json.h"

namespace shardplan::app {

report::RunSummary summarise(const plan::Plan& plan, const exec::RunReport& run, const Arguments& arguments,
                             std::uint64_t plan_hash);

/// What every rank did when.
std::vector<std::vector<report::TraceSpan>> trace_spans(const exec::RunReport& run);

}  // namespace shardplan::app
