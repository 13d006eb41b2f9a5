// Speed of the kernels against oneDNN, the compiler's plain loops and the memory, in one run:
//   OMP_NUM_THREADS=2 shardplan_bench_kernels --benchmark_enable_random_interleaving=true --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include "ratios.h"
#include "workload.h"

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    shardplan::bench::register_matmul();
    shardplan::bench::register_attention();
    shardplan::bench::register_elementwise();
    shardplan::bench::RatioReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    return 0;
}
