#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "ratios.h"
#include "workload.h"

namespace shardplan::bench {
namespace {

constexpr std::int64_t kv_heads = 8;
constexpr std::int64_t usual_group = 4;

struct Shape {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t dim = 0;
    DType dtype = DType::f32;
    std::int64_t group = usual_group;  ///< query heads of a key/value head
};

const kernels::Kernels& onednn() {
    static const auto instance = kernels::make_kernels(kernels::KernelSet::onednn);
    return *instance;
}

/// The last `queries` of `keys` tokens; of several pairs of caches, so that a decode finds none in a cache.
void run(benchmark::State& state, Shape shape) {
    const std::int64_t heads = kv_heads * shape.group;
    const Data q({1, shape.queries, heads, shape.dim}, shape.dtype);
    const Data y({1, shape.queries, heads, shape.dim}, shape.dtype);
    std::vector<std::unique_ptr<Data>> caches;
    const std::int64_t cache_bytes = shape.keys * kv_heads * shape.dim * tensor::size_of(shape.dtype);
    const std::int64_t wanted = shape.queries == 1 ? cold_bytes / cache_bytes : 2;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(2, wanted / 2 * 2); ++i) {
        caches.push_back(std::make_unique<Data>(tensor::Shape{1, shape.keys, kv_heads, shape.dim}, shape.dtype));
    }
    const std::array q_start = {shape.keys - shape.queries};
    const std::array k_valid = {shape.keys};
    const kernels::AttentionParams params{
        .scale = 0.1F, .q_start = q_start, .k_valid = k_valid, .queries_per_kv = shape.group};
    std::size_t next = 0;
    for (auto _ : state) {
        onednn().attention(q.view(), caches[next]->view(), caches[next + 1]->view(), params, y.view());
        next = (next + 2) % caches.size();
    }
    if (shape.queries == 1) {
        count_bytes(state, 2 * cache_bytes);
    } else {  // the causal half, both products
        const auto pairs = static_cast<double>(shape.queries) * static_cast<double>(shape.queries + 1) / 2;
        count_flops(state, 4.0 * pairs * static_cast<double>(heads * shape.dim));
    }
}

}  // namespace

void register_attention() {
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const std::int64_t dim : {64, 128}) {
            for (const std::int64_t length : {128, 512, 2048}) {
                const std::string name =
                    fmt::format("attention/{}/prefill{}/d{}/{}", tensor::to_string(dtype), length, dim, our_variant);
                benchmark::RegisterBenchmark(name.c_str(), run, Shape{length, length, dim, dtype})->UseRealTime();
            }
            for (const std::int64_t length : {2048, 4096, 16384}) {
                const std::string name =
                    fmt::format("attention/{}/decode{}/d{}/{}", tensor::to_string(dtype), length, dim, our_variant);
                benchmark::RegisterBenchmark(name.c_str(), run, Shape{1, length, dim, dtype})->UseRealTime();
            }
            for (const std::int64_t group : {1, 8}) {
                const std::string name = fmt::format("attention/{}/decode16384/d{}/group{}/{}",
                                                     tensor::to_string(dtype), dim, group, our_variant);
                benchmark::RegisterBenchmark(name.c_str(), run, Shape{1, 16384, dim, dtype, group})->UseRealTime();
            }
        }
    }
}

}  // namespace shardplan::bench
