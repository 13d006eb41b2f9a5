#include <doctest/doctest.h>

#include <stdexcept>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

constexpr ConstView none{};

Tensor naive_norm(const Tensor& x, const Tensor& w, const Tensor& b, const NormParams& params) {
    const std::int64_t n = x.shape().back();
    Tensor y(x.shape(), x.view().dtype);
    for (std::int64_t row = 0; row < x.count() / n; ++row) {
        double mean = 0.0;
        double variance = 0.0;
        for (std::int64_t i = 0; i < n && params.kind == NormKind::layer; ++i) {
            mean += x[row * n + i] / static_cast<double>(n);
        }
        for (std::int64_t i = 0; i < n; ++i) {
            variance += std::pow(x[row * n + i] - mean, 2) / static_cast<double>(n);
        }
        for (std::int64_t i = 0; i < n; ++i) {
            const double value = (x[row * n + i] - mean) / std::sqrt(variance + params.eps);
            y.set(row * n + i, value * (w[i] + params.weight_offset) + b[i]);
        }
    }
    return y;
}

TEST_CASE("norm: rows computed by hand") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor x({1, 4}, {1, -1, 3, 5});  // mean square 9, mean 2, variance 5
    Tensor y({1, 4});
    kernels->norm(x, none, none, {NormKind::rms, 0.0, 0.0F}, y);
    CHECK(test::difference(y, Tensor({1, 4}, {1.0F / 3, -1.0F / 3, 1, 5.0F / 3}), 1e-7) == "");
    kernels->norm(x, Tensor({4}, {0, 1, 2, 3}), none, {NormKind::rms, 7.0, 1.0F}, y);  // 1 + w, sqrt(9 + 7) = 4
    CHECK(test::difference(y, Tensor({1, 4}, {0.25, -0.5, 2.25, 5}), 1e-7) == "");
    kernels->norm(x, none, Tensor({4}, {1, 1, 1, 1}), {NormKind::layer, 4.0, 0.0F}, y);  // sqrt(5 + 4) = 3
    CHECK(test::difference(y, Tensor({1, 4}, {2.0F / 3, 0, 4.0F / 3, 2}), 1e-7) == "");
}

TEST_CASE("norm equals a two-pass norm in double") {
    const auto kernels = make_kernels(KernelSet::reference);
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const std::int64_t n : {1, 7, 8, 129, 1000}) {
            for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
                CAPTURE(n);
                const NormParams params{kind, 1e-5, 0.0F};
                const Tensor x = test::random_tensor(1, {2, 3, n}, dtype);
                const Tensor w = test::random_tensor(2, {n}, dtype);
                const Tensor b = test::random_tensor(3, {n}, dtype);
                Tensor y(x.shape(), dtype);
                kernels->norm(x, w, b, params, y);
                CHECK(test::difference(y, naive_norm(x, w, b, params), test::tolerance(dtype)) == "");
            }
        }
    }
}

TEST_CASE("a norm over a sharded dimension equals the whole norm") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::vector<base::Interval> shards = {{0, 5}, {5, 5}, {5, 40}, {40, 64}};
    const Tensor x = test::random_tensor(1, {6, 64});
    const Tensor w = test::random_tensor(2, {64});
    const Tensor b = test::random_tensor(3, {64});
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
        const NormParams params{kind, 1e-6, 1.0F};
        Tensor whole(x.shape());
        kernels->norm(x, w, b, params, whole);
        Tensor total({6, 2}, DType::f64);
        for (const base::Interval shard : shards) {
            Tensor part({6, 2}, DType::f64);
            kernels->norm_statistics(test::slice(x, 1, shard), part);
            for (std::int64_t i = 0; i < 12; ++i) {
                total.set(i, total[i] + part[i]);
            }
        }
        for (const base::Interval shard : shards) {
            Tensor y({6, shard.size()});
            kernels->norm_apply(test::slice(x, 1, shard), total, 64, test::slice(w, 0, shard), test::slice(b, 0, shard),
                                params, y);
            CHECK(test::difference(y, test::slice(whole, 1, shard), 1e-7) == "");
        }
    }
}

TEST_CASE("norm and apply of one shard have the same bits") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor x = test::random_tensor(1, {5, 77}, DType::bf16);
    const Tensor w = test::random_tensor(2, {77}, DType::bf16);
    const NormParams params{NormKind::layer, 1e-6, 0.0F};
    Tensor stats({5, 2}, DType::f64);
    Tensor whole(x.shape(), DType::bf16);
    Tensor split(x.shape(), DType::bf16);
    kernels->norm(x, w, none, params, whole);
    kernels->norm_statistics(x, stats);
    kernels->norm_apply(x, stats, 77, w, none, params, split);
    CHECK(whole == split);
}

TEST_CASE("norm refuses a weight of another size, and statistics in f32") {
    const auto kernels = make_kernels(KernelSet::reference);
    Tensor y({2, 4});
    CHECK_THROWS_WITH_AS(kernels->norm(Tensor({2, 4}), Tensor({3}), none, {}, y), "norm: w has shape [3], must be [4]",
                         std::invalid_argument);
    Tensor stats({2, 2});
    CHECK_THROWS_WITH_AS(kernels->norm_statistics(Tensor({2, 4}), stats), "norm_statistics: stats is f32, must be f64",
                         std::invalid_argument);
}

}  // namespace
}  // namespace shardplan::kernels
