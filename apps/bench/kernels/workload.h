// Data for the benchmarks of kernels, and where they register themselves.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/huge_buffer.h"
#include "kernels/random.h"
#include "tensor/view.h"

namespace shardplan::bench {

using tensor::DType;

/// More than any cache holds: what is read in turns over so many bytes comes from memory.
constexpr std::int64_t cold_bytes = std::int64_t{256} << 20;

/// A random tensor that owns its memory.
class Data {
public:
    explicit Data(tensor::Shape shape, DType dtype = DType::f32)
        : buffer_(tensor::byte_count(shape, dtype)), view_{buffer_.data(), dtype, shape} {
        std::vector<base::Interval> whole;
        for (const std::int64_t size : shape) {
            whole.push_back({0, size});
        }
        kernels::fill_block(1, 2, 0.1F, 0.0F, shape, whole, view_);
    }
    const tensor::View& view() const { return view_; }

private:
    kernels::HugeBuffer buffer_;
    tensor::View view_;
};

/// Counts `flops` per iteration and shows them per second.
inline void count_flops(benchmark::State& state, double flops) {
    state.counters["flops"] =
        benchmark::Counter(flops * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

inline void count_bytes(benchmark::State& state, std::int64_t bytes) {
    state.SetBytesProcessed(bytes * static_cast<std::int64_t>(state.iterations()));
}

void register_matmul();
void register_attention();
void register_elementwise();

}  // namespace shardplan::bench
