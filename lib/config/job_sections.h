// The sections of a job but for its model: each fills its part of plan::Job and reports all that is wrong in it.
#pragma once

#include "config/overrides.h"
#include "diag/diagnostic.h"
#include "model/config_value.h"
#include "plan/job.h"

namespace shardplan::config {

/// overrides.ranks fills a -1 when the section has no device count, or stands for that count (ranks_decide).
void read_mesh(const model::ConfigValue& value, const Overrides& overrides, plan::Job& job,
               diag::Diagnostics& diagnostics);
void read_options(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
/// @pre job.options is read: the dialect decides which fields exist
void read_partition_axis(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
void read_partition_rules(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
void read_pipeline(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
void read_backend(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
/// Leaves job.workload.dtype alone when the section does not name one.
/// Bytes as an integer, or text such as "80GB" (10^9) or "79.5GiB" (2^30).
void read_device_memory(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);
void read_workload(const model::ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics);

}  // namespace shardplan::config
