#include "ratios.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>

namespace shardplan::bench {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

void RatioReporter::ReportRuns(const std::vector<Run>& runs) {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
        if (run.run_type != Run::RT_Iteration || run.iterations == 0) {
            continue;
        }
        const std::string name =
            run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args);
        const double total = omp_get_max_threads() == 1 ? run.cpu_accumulated_time : run.real_accumulated_time;
        seconds_[name].push_back(total / static_cast<double>(run.iterations));
        // All benchmarks here use real time, so rates are by that; undone, because the median is taken of the time.
        const auto undo = [&](const char* counter) {
            const auto found = run.counters.find(counter);
            return found == run.counters.end()
                       ? 0.0
                       : found->second.value * run.real_accumulated_time / static_cast<double>(run.iterations);
        };
        bytes_[name] = undo("bytes_per_second");
        flops_[name] = undo("flops");
    }
}

void RatioReporter::Finalize() {
    ConsoleReporter::Finalize();
    const auto probe = seconds_.find(read_probe);
    const double bandwidth = probe == seconds_.end() ? 0.0 : bytes_[read_probe] / median(probe->second);
    fmt::print("\nthreads {}, read probe {:.1f} GB/s\n", omp_get_max_threads(), bandwidth * 1e-9);
    for (const auto& [name, times] : seconds_) {
        const auto slash = name.rfind('/');
        const std::string group = slash == std::string::npos ? "" : name.substr(0, slash);
        const auto ours = seconds_.find(group + "/" + our_variant);
        const double seconds = median(times);
        std::string line = fmt::format("{:<48} {:>10.1f} us", name, seconds * 1e6);
        if (bytes_[name] > 0.0) {
            line += fmt::format("  {:6.1f} GB/s  {:4.2f} of the probe", bytes_[name] / seconds * 1e-9,
                                bandwidth > 0.0 ? bytes_[name] / seconds / bandwidth : 0.0);
        }
        if (flops_[name] > 0.0) {
            line += fmt::format("  {:6.1f} GFLOP/s", flops_[name] / seconds * 1e-9);
        }
        if (ours != seconds_.end() && ours->first != name) {
            line += fmt::format("  {:5.2f} times ours", seconds / median(ours->second));
        }
        fmt::print("{}\n", line);
    }
}

}  // namespace shardplan::bench
