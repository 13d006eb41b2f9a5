// Components of heads moved about, heads with matrices of their own, values that are part of the keys.
#include <doctest/doctest.h>

#include <array>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

const auto reference = make_kernels(KernelSet::reference);

TEST_CASE("take: components from any place, of every leading dimension") {
    for (const DType dtype : {DType::f32, DType::bf16}) {
        const Tensor x = test::random_tensor(1, {2, 3, 4, 7}, dtype);
        for (const auto& [first, count] : {std::pair{0, 7}, std::pair{0, 3}, std::pair{2, 5}, std::pair{7, 0}}) {
            Tensor y({2, 3, 4, count}, dtype);
            reference->take(x, first, y);
            CHECK(y == test::slice(x, 3, {first, first + count}));
        }
    }
    Tensor y({2, 3});
    CHECK_THROWS(reference->take(Tensor({2, 4}), 2, y));
    CHECK_THROWS(reference->take(Tensor({3, 4}), 0, y));
    CHECK_THROWS(reference->take(Tensor({2, 4}), -1, y));
}

TEST_CASE("join: each head's tail, or one for all heads") {
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const std::int64_t tails : {1, 4}) {
            const Tensor x = test::random_tensor(1, {2, 3, 4, 5}, dtype);
            const Tensor tail = test::random_tensor(2, {2, 3, tails, 2}, dtype);
            Tensor y({2, 3, 4, 7}, dtype);
            reference->join(x, tail, y);
            CHECK(test::slice(y, 3, {0, 5}) == x);
            for (std::int64_t h = 0; h < 4; ++h) {
                const std::int64_t own = tails == 1 ? 0 : h;
                CHECK(test::slice(test::slice(y, 3, {5, 7}), 2, {h, h + 1}) == test::slice(tail, 2, {own, own + 1}));
            }
        }
    }
    Tensor y({1, 1, 4, 3});
    CHECK_THROWS(reference->join(Tensor({1, 1, 4, 2}), Tensor({1, 1, 2, 1}), y));
    CHECK_THROWS(reference->join(Tensor({1, 1, 4, 2}), Tensor({1, 1, 1, 2}), y));
}

TEST_CASE("head_matmul: every head by its own matrix, stored either way") {
    for (const auto set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const DType dtype : {DType::f32, DType::bf16}) {
            const Tensor x = test::random_tensor(1, {2, 3, 4, 5}, dtype);
            const Tensor w = test::random_tensor(2, {4, 6, 5}, dtype);
            Tensor rows({24, 5}, dtype);
            Tensor columns({20, 6}, dtype);
            for (std::int64_t i = 0; i < w.count(); ++i) {
                rows.set(i, w[i]);
                columns.set((i / 30 * 5 + i % 5) * 6 + i / 5 % 6, w[i]);
            }
            Tensor expected({2, 3, 4, 6}, dtype);
            for (std::int64_t i = 0; i < expected.count(); ++i) {
                double sum = 0.0;
                for (std::int64_t k = 0; k < 5; ++k) {
                    sum += x[i / 6 * 5 + k] * w.at({i / 6 % 4, i % 6, k});
                }
                expected.set(i, sum);
            }
            Tensor y(expected.shape(), dtype);
            kernels->head_matmul(x, rows, WeightOrder::out_in, y);
            CHECK(test::difference(y, expected, test::tolerance(dtype)) == "");
            kernels->head_matmul(x, columns, WeightOrder::in_out, y);
            CHECK(test::difference(y, expected, test::tolerance(dtype)) == "");
            Tensor half({2, 3, 2, 6}, dtype);
            kernels->head_matmul(test::slice(x, 2, {2, 4}), test::slice(rows, 0, {12, 24}), WeightOrder::out_in, half);
            CHECK(test::difference(half, test::slice(expected, 2, {2, 4}), test::tolerance(dtype)) == "");
        }
    }
    Tensor y({1, 1, 2, 3});
    CHECK_THROWS(reference->head_matmul(Tensor({1, 1, 2, 4}), Tensor({6, 5}), WeightOrder::out_in, y));
    CHECK_THROWS(reference->head_matmul(Tensor({1, 1, 2, 4}), Tensor({6, 4}), WeightOrder::in_out, y));
}

TEST_CASE("attention whose values are the leading components of the keys") {
    const std::array<std::int64_t, 2> start = {8, 5};
    const std::array<std::int64_t, 2> valid = {9, 6};
    for (const DType dtype : {DType::f32, DType::bf16}) {
        const Tensor q = test::random_tensor(1, {2, 1, 6, 10}, dtype);
        const Tensor k = test::random_tensor(2, {2, 12, 1, 10}, dtype);
        const Tensor v = test::slice(k, 3, {0, 7});
        AttentionParams params;
        params.scale = 0.3F;
        params.q_start = start;
        params.k_valid = valid;
        params.queries_per_kv = 6;
        Tensor expected({2, 1, 6, 7}, dtype);
        reference->attention(q, k, v, params, expected);
        params.value_dim = 7;
        Tensor y(expected.shape(), dtype);
        reference->attention(q, k, k, params, y);
        CHECK(y == expected);
        Tensor o({2, 1, 6, 7});
        Tensor m({2, 1, 6});
        Tensor l({2, 1, 6});
        reference->attention_partial(q, k, k, params, o, m, l);
        reference->softmax_merge(o, m, m, l, y);
        CHECK(test::difference(y, expected, test::tolerance(dtype)) == "");
        params.value_dim = 11;
        CHECK_THROWS(reference->attention(q, k, k, params, y));
    }
}

TEST_CASE("rope from a dimension on turns what a rope of that part alone would") {
    const std::array<float, 2> frequencies = {1.0F, 0.1F};
    const std::array<std::int64_t, 1> start = {3};
    for (const bool interleaved : {false, true}) {
        const Tensor x = test::random_tensor(1, {1, 4, 3, 7});
        Tensor y(x.shape());
        reference->rope(x, start, {4, interleaved, frequencies, 1.5F, 2}, y);
        Tensor part = test::slice(x, 3, {2, 6});
        reference->rope(part, start, {4, interleaved, frequencies, 1.5F}, part);
        CHECK(test::slice(y, 3, {2, 6}) == part);
        CHECK(test::slice(y, 3, {0, 2}) == test::slice(x, 3, {0, 2}));
        CHECK(test::slice(y, 3, {6, 7}) == test::slice(x, 3, {6, 7}));
        CHECK_THROWS(reference->rope(x, start, {4, interleaved, frequencies, 1.0F, 4}, y));
    }
}

}  // namespace
}  // namespace shardplan::kernels
