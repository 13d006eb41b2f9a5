#include "planned_job.h"

#include "plan/checks/check_job.h"

namespace shardplan::app {

PlannedJob plan_job(const config::JobSource& source, const config::Overrides& overrides) {
    PlannedJob result;
    result.job = config::read_job(source, overrides, result.diagnostics, &result.documents);
    if (result.job) {
        result.plan = plan::make_plan(*result.job, result.diagnostics);
    }
    if (!result.documents.empty()) {
        config::attach_spans(result.diagnostics, result.documents.front());
    }
    return result;
}

PlannedJob check_job(const config::JobSource& source, const config::Overrides& overrides) {
    PlannedJob result;
    result.job = config::read_job(source, overrides, result.diagnostics, &result.documents);
    if (result.job) {
        plan::check_job(*result.job, result.diagnostics);
    }
    if (!result.documents.empty()) {
        config::attach_spans(result.diagnostics, result.documents.front());
    }
    return result;
}

PlannedJob plan_job(const Arguments& arguments) {
    diag::Diagnostics diagnostics;
    const auto source = config::open_job(arguments.job, diagnostics);
    if (!source) {
        PlannedJob result;
        result.diagnostics = std::move(diagnostics);
        return result;
    }
    return plan_job(*source, arguments.overrides);
}

}  // namespace shardplan::app
