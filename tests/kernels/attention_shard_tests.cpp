#include <doctest/doctest.h>

#include <array>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("attention of some of the heads has the bits of the whole, in a decode and in a prefill") {
    const auto kernels = make_kernels(KernelSet::reference);
    for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const std::int64_t queries : {1, 70}) {
            const std::array<std::int64_t, 2> q_start = {2500 - queries, 1300 - queries};
            const std::array<std::int64_t, 2> k_valid = {2500, 1300};
            AttentionParams params{.scale = 0.3F, .q_start = q_start, .k_valid = k_valid, .queries_per_kv = 3};
            const Tensor q = test::random_tensor(1, {2, queries, 9, 10}, dtype);
            const Tensor k = test::random_tensor(2, {2, 2600, 3, 10}, dtype);
            const Tensor v = test::random_tensor(3, {2, 2600, 3, 10}, dtype);
            Tensor whole(q.shape(), dtype);
            kernels->attention(q, k, v, params, whole);
            params.q_head_start = 3;
            params.kv_head_start = 1;
            const Tensor part = test::slice(q, 2, {3, 9});
            Tensor y(part.shape(), dtype);
            kernels->attention(part, test::slice(k, 2, {1, 3}), test::slice(v, 2, {1, 3}), params, y);
            CHECK(y == test::slice(whole, 2, {3, 9}));
        }
    }
}

}  // namespace
}  // namespace shardplan::kernels
