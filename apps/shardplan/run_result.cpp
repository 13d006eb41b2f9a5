#include "run_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <numeric>

#include "report/plan_json.h"

namespace shardplan::app {
namespace {

std::string mesh_text(const mesh::Mesh& mesh) {
    std::vector<std::string> axes;
    for (const mesh::Axis& axis : mesh.axes()) {
        axes.push_back(fmt::format("{}={}", axis.name, axis.size));
    }
    return fmt::format("{} ({} device{})", fmt::join(axes, ", "), mesh.device_count(),
                       mesh.device_count() == 1 ? "" : "s");
}

report::VerifyResult verify_result(const exec::Comparison& comparison) {
    report::VerifyResult result;
    result.passed = comparison.passed;
    result.max_abs = comparison.max_absolute;
    result.max_rel = comparison.max_relative;
    result.rms_rel = comparison.relative_rms;
    result.tolerance =
        fmt::format("|a-b| <= {:g} * max(1, rms) + {:g} * |b|, relative rms <= {:g}", comparison.tolerance.absolute,
                    comparison.tolerance.relative, comparison.tolerance.rms);
    result.worst_index = comparison.worst;
    result.expected = comparison.worst_reference;
    result.actual = comparison.worst_value;
    result.elements = comparison.compared;
    return result;
}

void add_counts(const exec::RunReport& run, report::RunSummary& summary) {
    for (const exec::TrafficCount& count : run.traffic) {
        summary.collectives.push_back({std::string(mesh::to_string(count.kind)),
                                       {count.predicted_calls, count.counted_calls},
                                       {count.predicted_bytes, count.counted_bytes},
                                       count.most_bytes,
                                       count.routed_bytes});
    }
    for (const exec::MemoryCount& count : run.memory) {
        const std::int64_t allocated = count.lowest == count.predicted ? count.highest : count.lowest;
        summary.memory.push_back({std::string(exec::to_string(count.category)), {count.predicted, allocated}});
    }
}

void add_times(const plan::Plan& plan, const exec::RunReport& run, report::RunSummary& summary) {
    for (const exec::StepTime& time : run.times) {
        const auto steps = static_cast<double>(std::max<std::int64_t>(1, run.measured_steps));
        summary.times.push_back(
            {time.timer.name, time.calls / std::max<std::int64_t>(1, run.measured_steps), time.seconds / steps});
    }
    if (!run.step_seconds.empty()) {
        summary.step_seconds = std::accumulate(run.step_seconds.begin(), run.step_seconds.end(), 0.0) /
                               static_cast<double>(run.step_seconds.size());
        const model::Workload& workload = plan.job.workload;
        const auto tokens = static_cast<double>(workload.total_batch() * workload.query_length());
        summary.tokens_per_second = summary.step_seconds > 0.0 ? tokens / summary.step_seconds : 0.0;
    }
}

}  // namespace

report::RunSummary summarise(const plan::Plan& plan, const exec::RunReport& run, const Arguments& arguments,
                             int threads, std::uint64_t plan_hash) {
    report::RunSummary summary;
    summary.job = plan.job.name.empty() ? arguments.job : plan.job.name;
    summary.mesh = mesh_text(plan.job.mesh);
    summary.provider = std::string(backend::to_string(plan.provider.kind));
    summary.kernels = run.kernels;
    summary.plan_hash = report::hash_text(plan_hash);
    summary.ranks = run.ranks;
    summary.threads = threads;
    if (run.verified) {
        summary.verify = verify_result(run.comparison);
    }
    if (!run.generated.empty()) {
        summary.generated = report::Generated{run.generated, {}};
        if (run.verified) {
            summary.generated->mismatches = run.token_mismatches;
        }
    }
    add_counts(run, summary);
    summary.kernel_scratch_bytes = run.scratch_bytes;
    add_times(plan, run, summary);
    if (run.ranks * threads > sysconf(_SC_NPROCESSORS_ONLN)) {
        summary.notes.push_back("more ranks and threads than cores of this host: times are not comparable");
    }
    if (!run.transport.empty()) {
        summary.notes.push_back(run.transport);
    }
    return summary;
}

}  // namespace shardplan::app
