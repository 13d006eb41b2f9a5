#include <fmt/format.h>
#include <omp.h>

#include <map>
#include <memory>

#include "kernels/kernels.h"
#include "kernels/onednn/library.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/strip_product.h"
#include "ratios.h"
#include "workload.h"

namespace shardplan::bench {
namespace {

using kernels::MatmulShape;
using kernels::onednn::Library;
using kernels::onednn::PackedWeight;
using kernels::onednn::Packing;

/// Copies of one weight as oneDNN, or where it cannot multiply the type our tiles, want it: enough to be cold.
struct Weights {
    std::vector<std::unique_ptr<PackedWeight>> packed;
    std::vector<std::unique_ptr<kernels::Weight>> prepared;
};

Library& library() {
    static Library instance;
    return instance;
}

const kernels::Kernels& onednn() {
    static const auto instance = kernels::make_kernels(kernels::KernelSet::onednn);
    return *instance;
}

const Weights& weights_of(const MatmulShape& shape, DType dtype) {
    static std::map<std::pair<MatmulShape, DType>, Weights> all;
    const auto [place, fresh] = all.try_emplace({{0, shape.n, shape.k}, dtype});
    if (fresh) {
        const Data source({shape.n, shape.k}, dtype);
        for (std::int64_t bytes = 0; bytes < cold_bytes; bytes += source.view().bytes()) {
            if (library().multiplies(dtype)) {
                place->second.packed.push_back(
                    library().pack(source.view(), kernels::WeightOrder::out_in, {shape.n, shape.k}));
            } else {
                place->second.prepared.push_back(onednn().prepare(source.view(), kernels::WeightOrder::out_in));
            }
        }
    }
    return place->second;
}

void count(benchmark::State& state, const MatmulShape& shape, DType dtype) {
    if (shape.m <= 16) {
        count_bytes(state, shape.n * shape.k * tensor::size_of(dtype));
    }
    count_flops(state, 2.0 * static_cast<double>(shape.m * shape.n * shape.k));
}

void run_onednn(benchmark::State& state, MatmulShape shape, DType dtype) {
    const Weights& weights = weights_of(shape, dtype);
    const Data x({shape.m, shape.k}, dtype);
    const Data y({shape.m, shape.n}, dtype);
    library().matmul(x.view(), *weights.packed.front(), shape, y.view());
    std::size_t next = 0;
    for (auto _ : state) {
        library().matmul(x.view(), *weights.packed[next], shape, y.view());
        next = (next + 1) % weights.packed.size();
    }
    count(state, shape, dtype);
}

/// The loops for few rows, whatever the number of rows.
void run_few(benchmark::State& state, MatmulShape shape, DType dtype) {
    const Weights& weights = weights_of(shape, dtype);
    const Data x({shape.m, shape.k}, dtype);
    const Data y({shape.m, shape.n}, dtype);
    std::size_t next = 0;
    for (auto _ : state) {
        const PackedWeight& weight = *weights.packed[next];
        if (weight.packing() == Packing::blocks) {
            multiply_few_blocks(x.view(), weight.data(), shape, y.view());
        } else {
            multiply_few(x.view(), {weight.data(), dtype, {shape.n, shape.k}}, shape, y.view());
        }
        next = (next + 1) % weights.packed.size();
    }
    count(state, shape, dtype);
}

/// Where oneDNN does not multiply the type.
void run_tiles(benchmark::State& state, MatmulShape shape, DType dtype) {
    const Weights& weights = weights_of(shape, dtype);
    const Data x({shape.m, shape.k}, dtype);
    const Data y({shape.m, shape.n}, dtype);
    std::size_t next = 0;
    for (auto _ : state) {
        onednn().matmul(x.view(), *weights.prepared[next], y.view());
        next = (next + 1) % weights.prepared.size();
    }
    count(state, shape, dtype);
}

/// bf16 times int8 weights.
void run_quantised(benchmark::State& state, MatmulShape shape) {
    static std::map<MatmulShape, std::vector<kernels::QuantisedStrips>> all;
    std::vector<kernels::QuantisedStrips>& weights = all[{0, shape.n, shape.k}];
    if (weights.empty()) {
        const Data source({shape.n, shape.k}, DType::bf16);
        for (std::int64_t bytes = 0; bytes < cold_bytes; bytes += shape.n * shape.k) {
            weights.push_back(kernels::pack_quantised(source.view(), kernels::WeightOrder::out_in, {shape.n, shape.k}));
        }
    }
    const Data x({shape.m, shape.k}, DType::bf16);
    const Data y({shape.m, shape.n}, DType::bf16);
    std::size_t next = 0;
    for (auto _ : state) {
        const kernels::QuantisedStrips& weight = weights[next];
        kernels::multiply_strips(x.view(), {weight.data.data(), DType::i8, weight.scales}, shape, y.view());
        next = (next + 1) % weights.size();
    }
    count(state, shape, DType::i8);
}

void run_read_probe(benchmark::State& state) {
    constexpr std::int64_t bytes = std::int64_t{64} << 20;
    static const Data data({cold_bytes / 4});
    std::int64_t first = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(kernels::read_all(data.view().data + first, bytes));
        first = (first + bytes) % cold_bytes;
    }
    count_bytes(state, bytes);
}

void add(const MatmulShape& shape, DType dtype) {
    const std::string group = fmt::format("matmul/{}/{}x{}x{}/", tensor::to_string(dtype), shape.m, shape.n, shape.k);
    if (!library().multiplies(dtype)) {
        benchmark::RegisterBenchmark((group + our_variant).c_str(), run_tiles, shape, dtype)->UseRealTime();
        return;
    }
    benchmark::RegisterBenchmark((group + "onednn").c_str(), run_onednn, shape, dtype)->UseRealTime();
    if (shape.m <= kernels::small_rows) {
        benchmark::RegisterBenchmark((group + our_variant).c_str(), run_few, shape, dtype)->UseRealTime();
    }
}

}  // namespace

void register_matmul() {
    benchmark::RegisterBenchmark(read_probe, run_read_probe)->UseRealTime();
    for (const auto& [n, k] :
         {std::pair{1024, 1024}, std::pair{4096, 4096}, std::pair{14336, 4096}, std::pair{4096, 14336}}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const int m : {1, 2, 4, 8, 16, 128, 512}) {
                add({m, n, k}, dtype);
            }
        }
        for (const int m : {1, 2, 4, 8, 16, 128, 512}) {
            const std::string name = fmt::format("matmul/i8/{}x{}x{}/{}", m, n, k, our_variant);
            benchmark::RegisterBenchmark(name.c_str(), run_quantised, MatmulShape{m, n, k})->UseRealTime();
        }
    }
}

}  // namespace shardplan::bench
