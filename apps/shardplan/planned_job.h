// From the command line to a plan: what plan and run have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "config/document.h"
#include "config/job_reader.h"
#include "diag/diagnostic.h"
#include "plan/plan.h"

namespace shardplan::app {

struct PlannedJob {
    std::optional<plan::Job> job;    ///< absent when the job could not be read
    std::optional<plan::Plan> plan;  ///< absent when there are errors
    diag::Diagnostics diagnostics;   ///< with places
    std::vector<config::Document> documents;
};

PlannedJob plan_job(const Arguments& arguments);
/// Only checked: `plan` stays absent.
PlannedJob check_job(const config::JobSource& source, const config::Overrides& overrides);
/// The same from a text already at hand (standard input, sent by rank 0).
PlannedJob plan_job(const config::JobSource& source, const config::Overrides& overrides);

}  // namespace shardplan::app
