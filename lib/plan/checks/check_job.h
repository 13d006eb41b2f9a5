// Everything that can be said against a job without lowering it: the same passes as make_plan, which goes on with what
// they leave. A job has errors here exactly if make_plan refuses it. Lowers only where the answer depends on it: when
// the job states device_memory, and when byte counts come near 2^63.
#pragma once

#include "diag/diagnostic.h"
#include "plan/job.h"

namespace shardplan::plan {

/// Errors, warnings and notes, defaults taken (SP2004) included. Never throws for what a job says.
void check_job(const Job& job, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
