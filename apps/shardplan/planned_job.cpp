#include "planned_job.h"

#include "plan/checks/check_job.h"

namespace shardplan::app {

namespace {

/// Reads the job, hands it to `use` if it can be read, and gives every finding its place.
template <typename Use>
PlannedJob read_and(const config::JobSource& source, const config::Overrides& overrides, Use use) {
    PlannedJob result;
    result.job = config::read_job(source, overrides, result.diagnostics, &result.documents);
    if (result.job) {
        use(result);
    }
    if (!result.documents.empty()) {
        config::attach_spans(result.diagnostics, result.documents.front());
    }
    return result;
}

}  // namespace

PlannedJob plan_job(const config::JobSource& source, const config::Overrides& overrides) {
    return read_and(source, overrides,
                    [](PlannedJob& read) { read.plan = plan::make_plan(*read.job, read.diagnostics); });
}

PlannedJob check_job(const config::JobSource& source, const config::Overrides& overrides) {
    return read_and(source, overrides, [](PlannedJob& read) { plan::check_job(*read.job, read.diagnostics); });
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
