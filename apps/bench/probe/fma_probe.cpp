#include <omp.h>

#include <chrono>
#include <stdexcept>

#include "probes.h"

namespace shardplan::bench {
namespace {

using Clock = std::chrono::steady_clock;

#ifdef __AVX512F__
constexpr int lanes = 16;
#else
constexpr int lanes = 8;
#endif
using Vector __attribute__((vector_size(lanes * sizeof(float)))) = float;

constexpr int chains = 12;  // more than latency times units of any such core, and few enough for its registers
constexpr int steps = 200'000;
constexpr double flops_per_call = 2.0 * lanes * chains * steps;

/// Chains of multiply-and-add that wait for nothing but themselves.
float multiply_and_add(float start) {
    Vector sums[chains];
    Vector factor;
    for (int lane = 0; lane < lanes; ++lane) {
        factor[lane] = 0.5F + start;
    }
    for (int chain = 0; chain < chains; ++chain) {
        sums[chain] = factor + static_cast<float>(chain);
    }
    for (int step = 0; step < steps; ++step) {
        for (int chain = 0; chain < chains; ++chain) {
            sums[chain] = sums[chain] * factor + factor;
        }
        asm volatile("" : "+x"(factor));  // else the loop is worked out when it is compiled
    }
    float total = 0.0F;
    for (const Vector& sum : sums) {
        for (int lane = 0; lane < lanes; ++lane) {
            total += sum[lane];
        }
    }
    return total;
}

}  // namespace

double fma_flops(int threads, double seconds) {
    std::vector<double> rates;
    float total = 0.0F;
    const auto begin = Clock::now();
    double passed = 0.0;
    while (rates.size() < 5 || passed < seconds) {
        const auto start = Clock::now();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
        for (int t = 0; t < threads; ++t) {
            total += multiply_and_add(0.001F * static_cast<float>(t));
        }
        const auto end = Clock::now();
        rates.push_back(flops_per_call * threads / std::chrono::duration<double>(end - start).count());
        passed = std::chrono::duration<double>(end - begin).count();
    }
    if (total <= 0.0F) {  // the sums must be wanted
        throw std::logic_error("sums of positive numbers are positive");
    }
    return median(rates);
}

}  // namespace shardplan::bench
