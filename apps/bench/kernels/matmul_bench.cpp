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

/// Copies of one weight as oneDNN wants it, where it multiplies the type, and as our kernels hold it: enough to be
/// cold.
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
            }
            place->second.prepared.push_back(onednn().prepare(source.view(), kernels::WeightOrder::out_in));
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

/// Calls multiply(x, number of the weight, y), with the next of `copies` weights each time.
template <typename Multiply>
void run_cold(benchmark::State& state, const MatmulShape& shape, DType dtype, std::size_t copies, Multiply multiply) {
    const Data x({shape.m, shape.k}, dtype == DType::i8 ? DType::bf16 : dtype);
    const Data y({shape.m, shape.n}, x.view().dtype);
    multiply(x.view(), std::size_t{0}, y.view());
    std::size_t next = 0;
    for (auto _ : state) {
        multiply(x.view(), next, y.view());
        next = (next + 1) % copies;
    }
    count(state, shape, dtype);
}

void run_onednn(benchmark::State& state, MatmulShape shape, DType dtype) {
    const auto& packed = weights_of(shape, dtype).packed;
    run_cold(state, shape, dtype, packed.size(),
             [&](const auto& x, std::size_t i, const auto& y) { library().matmul(x, *packed[i], shape, y); });
}

void run_ours(benchmark::State& state, MatmulShape shape, DType dtype) {
    const auto& prepared = weights_of(shape, dtype).prepared;
    run_cold(state, shape, dtype, prepared.size(),
             [&](const auto& x, std::size_t i, const auto& y) { onednn().matmul(x, *prepared[i], y); });
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
    run_cold(state, shape, DType::i8, weights.size(), [&](const auto& x, std::size_t i, const auto& y) {
        kernels::multiply_strips(x, {weights[i].data.data(), DType::i8, weights[i].scales}, shape, y);
    });
}

/// What is used as it lies in memory, by one of the sets of kernels; `groups` weights that share the rows evenly.
struct Plain {
    kernels::KernelSet set = kernels::KernelSet::onednn;
    DType dtype = DType::f32;
    kernels::WeightOrder order = kernels::WeightOrder::out_in;
    std::int64_t groups = 1;
    MatmulShape shape;  ///< of all groups together
};

void run_plain(benchmark::State& state, const Plain& plain) {
    const auto& [m, n, k] = plain.shape;
    const auto kernels = kernels::make_kernels(plain.set);
    const bool out_in = plain.order == kernels::WeightOrder::out_in;
    const tensor::Shape matrix{out_in ? n : k, out_in ? k : n};
    const Data w({plain.groups, matrix[0], matrix[1]}, plain.dtype);
    std::vector<std::int64_t> first_rows;
    for (std::int64_t g = 0; g <= plain.groups; ++g) {
        first_rows.push_back(m * g / plain.groups);
    }
    run_cold(state, plain.shape, plain.dtype, 1, [&](const auto& x, std::size_t, const auto& y) {
        if (plain.groups == 1) {
            kernels->matmul_plain(x, {w.view().data, plain.dtype, matrix}, plain.order, y);
        } else {
            kernels->grouped_matmul(x, w.view(), plain.order, first_rows, y);
        }
    });
    if (m <= 16) {
        count_bytes(state, w.view().bytes());
    }
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
    if (library().multiplies(dtype)) {
        benchmark::RegisterBenchmark((group + "onednn").c_str(), run_onednn, shape, dtype)->UseRealTime();
    }
    benchmark::RegisterBenchmark((group + our_variant).c_str(), run_ours, shape, dtype)->UseRealTime();
}

/// The dot products of the reference beside what is chosen.
void add_plain() {
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const auto order : {kernels::WeightOrder::out_in, kernels::WeightOrder::in_out}) {
            for (const auto& [groups, m] : {std::pair{1, 1}, std::pair{1, 4}, std::pair{1, 128}, std::pair{8, 8},
                                            std::pair{8, 128}, std::pair{8, 512}}) {
                Plain plain{kernels::KernelSet::onednn, dtype, order, groups, {m, 1024, 2048}};
                const std::string group =
                    fmt::format("plain/{}/{}/{}x{}/", tensor::to_string(dtype),
                                order == kernels::WeightOrder::out_in ? "out_in" : "in_out", groups, m);
                benchmark::RegisterBenchmark((group + our_variant).c_str(), run_plain, plain)->UseRealTime();
                if (order == kernels::WeightOrder::in_out) {  // else it is what is chosen
                    plain.set = kernels::KernelSet::reference;
                    benchmark::RegisterBenchmark((group + "reference").c_str(), run_plain, plain)->UseRealTime();
                }
            }
        }
    }
}

}  // namespace

void register_matmul() {
    benchmark::RegisterBenchmark(read_probe, run_read_probe)->UseRealTime();
    add_plain();
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
