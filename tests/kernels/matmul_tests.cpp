#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

/// y = x W^T in double, for w [n, k].
Tensor naive_matmul(const Tensor& x, const Tensor& w, DType dtype) {
    const std::int64_t n = w.shape()[0];
    const std::int64_t k = w.shape()[1];
    tensor::Shape shape = x.shape();
    shape.back() = n;
    Tensor y(shape, dtype);
    for (std::int64_t i = 0; i < y.count(); ++i) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            sum += x[i / n * k + j] * w[i % n * k + j];
        }
        y.set(i, sum);
    }
    return y;
}

Tensor transposed(const Tensor& w, DType dtype) {
    const std::int64_t n = w.shape()[0];
    const std::int64_t k = w.shape()[1];
    Tensor t({k, n}, dtype);
    for (std::int64_t i = 0; i < n * k; ++i) {
        t.set(i % k * n + i / k, w[i]);
    }
    return t;
}

struct Case {
    std::int64_t m, n, k;
};

TEST_CASE("matmul: a product computed by hand, in both weight orders") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor x({2, 3}, {1, 2, 3, -1, 0, 2});
    const Tensor w({2, 3}, {1, 0, 1, 2, -1, 0.5});
    const Tensor expected({2, 2}, {4, 1.5, 1, -1});
    Tensor y({2, 2});
    kernels->matmul(x, *kernels->prepare(w, WeightOrder::out_in), y);
    CHECK(y == expected);
    y = Tensor({2, 2});
    kernels->matmul_plain(x, transposed(w, DType::f32), WeightOrder::in_out, y);
    CHECK(y == expected);
}

TEST_CASE("matmul equals the naive product for shapes around every block boundary") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Case cases[] = {{1, 1, 1},    {1, 48, 16}, {2, 49, 17},  {3, 50, 15},    {4, 3, 1024},
                          {5, 4, 1025}, {63, 47, 9}, {64, 97, 31}, {65, 96, 2050}, {67, 145, 8},
                          {7, 0, 5},    {0, 4, 5},   {3, 4, 0}};
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const DType out : {DType::f32, dtype}) {
            for (const auto& [m, n, k] : cases) {
                CAPTURE(m);
                CAPTURE(n);
                CAPTURE(k);
                const Tensor x = test::random_tensor(1, {m, k}, dtype);
                const Tensor w = test::random_tensor(2, {n, k}, dtype);
                const Tensor expected = naive_matmul(x, w, out);
                const double limit = test::tolerance(out) * (1.0 + static_cast<double>(k) / 512);
                Tensor y = test::random_tensor(3, {m, n}, out);
                kernels->matmul(x, *kernels->prepare(w, WeightOrder::out_in), y);
                CHECK(test::difference(y, expected, limit) == "");
                y = test::random_tensor(3, {m, n}, out);
                kernels->matmul(x, *kernels->prepare(transposed(w, dtype), WeightOrder::in_out), y);
                CHECK(test::difference(y, expected, limit) == "");
            }
        }
    }
}

TEST_CASE("matmul: a shard of the columns or rows has the bits of the whole") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor x = test::random_tensor(1, {9, 1100});
    const Tensor w = test::random_tensor(2, {100, 1100});
    Tensor whole({9, 100});
    kernels->matmul_plain(x, w, WeightOrder::out_in, whole);
    for (const base::Interval range : {base::Interval{0, 1}, base::Interval{7, 62}, base::Interval{62, 100}}) {
        Tensor columns({9, range.size()});
        kernels->matmul_plain(x, test::slice(w, 0, range), WeightOrder::out_in, columns);
        CHECK(columns == test::slice(whole, 1, range));
    }
    Tensor row({1, 100});
    kernels->matmul_plain(test::slice(x, 0, {5, 6}), w, WeightOrder::out_in, row);
    CHECK(row == test::slice(whole, 0, {5, 6}));
}

TEST_CASE("matmul flattens leading dimensions and reports the size of the weight") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        const Tensor x = test::random_tensor(1, {2, 3, 8});
        const Tensor w = test::random_tensor(2, {5, 8});
        const auto weight = kernels->prepare(w, WeightOrder::out_in);
        CHECK(weight->inputs() == 8);
        CHECK(weight->outputs() == 5);
        CHECK(weight->packed_bytes() >= 5 * 8 * 4);
        Tensor y({2, 3, 5});
        kernels->matmul(x, *weight, y);
        CHECK(test::difference(y, naive_matmul(x, w, DType::f32), 1e-5) == "");
    }
}

TEST_CASE("several weights at once: each result has the bits of its own product") {
    const std::int64_t widths[] = {130, 37, 0, 64};
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const auto& [dtype, out] :
             {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
            for (const std::int64_t rows : {0, 1, 3, 8, 9, 150}) {
                CAPTURE(to_string(set));
                CAPTURE(rows);
                const Tensor x = test::random_tensor(1, {1, rows, 301}, dtype);
                std::vector<std::unique_ptr<Weight>> weights;
                std::vector<const Weight*> parts;
                std::vector<Tensor> expected;
                std::vector<Tensor> results;
                std::vector<View> views;
                for (const std::int64_t width : widths) {
                    const Tensor w = test::random_tensor(static_cast<std::uint64_t>(width), {width, 301}, dtype);
                    parts.push_back(weights.emplace_back(kernels->prepare(w, WeightOrder::out_in)).get());
                    Tensor& y = expected.emplace_back(tensor::Shape{1, rows, width}, out);
                    kernels->matmul(x, *parts.back(), y);
                    results.push_back(test::random_tensor(3, {1, rows, width}, out));
                }
                for (Tensor& result : results) {
                    views.push_back(result);
                }
                kernels->matmul_parts(x, parts, views);
                for (std::size_t i = 0; i < results.size(); ++i) {
                    CHECK(results[i] == expected[i]);
                }
                views.pop_back();
                CHECK_THROWS_AS(kernels->matmul_parts(x, parts, views), std::invalid_argument);
            }
        }
    }
}

TEST_CASE("matmul refuses what does not fit") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        const Tensor w({5, 8});
        const auto weight = kernels->prepare(w, WeightOrder::out_in);
        Tensor y({3, 5});
        CHECK_THROWS_WITH_AS(kernels->matmul(Tensor({3, 7}), *weight, y),
                             "matmul: x [3, 7] does not end with the 8 inputs of the weight", std::invalid_argument);
        CHECK_THROWS_WITH_AS(kernels->matmul(Tensor({4, 8}), *weight, y), "matmul: y has shape [3, 5], must be [4, 5]",
                             std::invalid_argument);
        CHECK_THROWS_WITH_AS(kernels->matmul(Tensor({3, 8}, DType::bf16), *weight, y), "matmul: x is bf16, must be f32",
                             std::invalid_argument);
        CHECK_THROWS_WITH_AS(kernels->prepare(Tensor({5}), WeightOrder::out_in),
                             "prepare: w has shape [5], must have 2 dimensions", std::invalid_argument);
        CHECK_THROWS_AS(kernels->prepare(Tensor({5, 8}, DType::i32), WeightOrder::out_in), std::invalid_argument);
    }
}

}  // namespace
}  // namespace shardplan::kernels
