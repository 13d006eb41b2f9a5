// Prints what the benchmarks measure as ratios: names are "group/variant", and all variants of a group do the same
// work.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace shardplan::bench {

/// The variant the others are compared with, and the benchmark that reads memory.
constexpr const char* our_variant = "ours";
constexpr const char* read_probe = "read_probe";

/// Also prints each run as usual. Times are medians: of the processor where there is one thread, else of the wall.
class RatioReporter : public benchmark::ConsoleReporter {
public:
    RatioReporter() : ConsoleReporter(OO_Tabular) {}
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override;

private:
    std::map<std::string, std::vector<double>> seconds_;  ///< per iteration
    std::map<std::string, double> bytes_, flops_;         ///< per iteration
};

}  // namespace shardplan::bench
