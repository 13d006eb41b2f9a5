#include "run_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/step_work.h"
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
    result.own_rms = comparison.own_rms;
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

/// Of `passes` passes, which may have several steps (chunks of a prompt): the median pass, shared among its steps.
double median_step(const std::vector<double>& seconds, std::int64_t passes) {
    const std::size_t chunks = seconds.size() / static_cast<std::size_t>(passes);
    std::vector<double> sums;
    for (auto first = seconds.begin(); first != seconds.end(); first += static_cast<std::ptrdiff_t>(chunks)) {
        sums.push_back(std::accumulate(first, first + static_cast<std::ptrdiff_t>(chunks), 0.0));
    }
    std::sort(sums.begin(), sums.end());
    const std::size_t half = sums.size() / 2;
    const double middle = sums.size() % 2 == 1 ? sums[half] : 0.5 * (sums[half - 1] + sums[half]);
    return middle / static_cast<double>(chunks);
}

void add_times(const plan::Plan& plan, const exec::RunReport& run, std::int64_t repeat, report::RunSummary& summary) {
    for (const exec::StepTime& time : run.times) {
        const auto steps = static_cast<double>(std::max<std::int64_t>(1, run.measured_steps));
        summary.times.push_back(
            {time.timer.name, time.calls / std::max<std::int64_t>(1, run.measured_steps), time.seconds / steps});
    }
    summary.outside_seconds = run.outside_seconds / static_cast<double>(std::max<std::int64_t>(1, run.measured_steps));
    if (!run.step_seconds.empty()) {
        summary.mean_step_seconds = std::accumulate(run.step_seconds.begin(), run.step_seconds.end(), 0.0) /
                                    static_cast<double>(run.step_seconds.size());
        summary.step_seconds = repeat > 0 ? median_step(run.step_seconds, repeat) : summary.mean_step_seconds;
        const model::Workload& workload = plan.job.workload;
        const auto tokens = static_cast<double>(workload.total_batch() * workload.query_length());
        summary.tokens_per_second = summary.step_seconds > 0.0 ? tokens / summary.step_seconds : 0.0;
        const plan::StepWork work = plan::step_work(plan);
        summary.step_flops = work.flops;
        summary.step_bytes = work.bytes;
    }
}

void add_ranks(const exec::RunReport& run, report::RunSummary& summary) {
    summary.oversubscribed = run.oversubscribed;
    for (std::size_t rank = 0; rank < run.threads.size(); ++rank) {
        summary.threads = std::max(summary.threads, run.threads[rank]);
        summary.binding.push_back({run.cores[rank].host, comm::cores_text(run.cores[rank].cores), run.threads[rank]});
    }
}

report::TraceSpan::Kind kind_of(std::int32_t step) {
    switch (step) {
        case exec::trace_receive: return report::TraceSpan::Kind::receive;
        case exec::trace_send: return report::TraceSpan::Kind::send;
        case exec::trace_model_step: return report::TraceSpan::Kind::model_step;
        default: return report::TraceSpan::Kind::step;
    }
}

}  // namespace

std::vector<std::vector<report::TraceSpan>> trace_spans(const exec::RunReport& run) {
    std::vector<std::vector<report::TraceSpan>> ranks;
    for (const std::vector<exec::TraceEvent>& events : run.trace) {
        std::vector<report::TraceSpan>& spans = ranks.emplace_back();
        for (const exec::TraceEvent& event : events) {
            spans.push_back(
                {kind_of(event.step), event.use, event.step, event.pass, event.run, event.start, event.duration});
        }
    }
    return ranks;
}

report::RunSummary summarise(const plan::Plan& plan, const exec::RunReport& run, const Arguments& arguments,
                             std::uint64_t plan_hash) {
    report::RunSummary summary;
    summary.job = plan.job.name.empty() ? arguments.job : plan.job.name;
    summary.mesh = mesh_text(plan.job.mesh);
    summary.provider = std::string(backend::to_string(plan.provider.kind));
    summary.kernels = run.kernels;
    summary.plan_hash = report::hash_text(plan_hash);
    summary.ranks = run.ranks;
    add_ranks(run, summary);
    if (run.verified) {
        summary.verify = verify_result(run.comparison);
        summary.verify->routing_ties = run.routing_ties;
        if (run.rounding) {
            summary.rounding = verify_result(run.rounding->comparison);
            summary.rounding->routing_ties = run.rounding->routing_ties;
        }
    }
    if (!run.generated.empty()) {
        summary.generated = report::Generated{run.generated, {}};
        if (run.verified) {
            summary.generated->mismatches = run.token_mismatches;
            if (run.rounding) {
                summary.generated->changed_by_rounding = run.rounding->token_mismatches;
            }
        }
    }
    add_counts(run, summary);
    summary.kernel_scratch_bytes = run.scratch_bytes;
    summary.resident_bytes = run.resident_bytes;
    summary.planned_bytes = plan.memory.total();
    add_times(plan, run, arguments.repeat, summary);
    if (run.oversubscribed) {
        summary.notes.push_back("more ranks and threads than cores: times are not comparable");
    }
    if (!run.transport.empty()) {
        summary.notes.push_back(run.transport);
    }
    return summary;
}

}  // namespace shardplan::app
