#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("oneDNN's products equal the reference, for random shapes (empty ones too), orders and dtypes") {
    const auto reference = make_kernels(KernelSet::reference);
    const auto onednn = make_kernels(KernelSet::onednn);
    CHECK(rc::check([&] {
        const auto m = *rc::gen::inRange<std::int64_t>(0, 40);
        const auto n = *rc::gen::inRange<std::int64_t>(0, 150);
        const auto k = *rc::gen::inRange<std::int64_t>(0, 150);
        const auto order = *rc::gen::element(WeightOrder::out_in, WeightOrder::in_out);
        const DType dtype = *rc::gen::element(DType::f32, DType::bf16);
        const DType out = *rc::gen::element(DType::f32, dtype);
        const Tensor x = test::random_tensor(1, {m, k}, dtype);
        const Tensor w = order == WeightOrder::out_in ? test::random_tensor(2, {n, k}, dtype)
                                                      : test::random_tensor(2, {k, n}, dtype);
        Tensor expected({m, n}, out);
        reference->matmul_plain(x, w, order, expected);
        Tensor y = test::random_tensor(3, {m, n}, out);
        onednn->matmul(x, *onednn->prepare(w, order), y);
        RC_ASSERT(test::difference(y, expected, test::tolerance(out)) == "");
        y = test::random_tensor(4, {m, n}, out);
        onednn->matmul_plain(x, w, order, y);
        RC_ASSERT(test::difference(y, expected, test::tolerance(out)) == "");
    }));
}

TEST_CASE("oneDNN's set multiplies groups of weights in either order as the reference, for random shapes") {
    const auto reference = make_kernels(KernelSet::reference);
    const auto onednn = make_kernels(KernelSet::onednn);
    CHECK(rc::check([&] {
        const auto groups = *rc::gen::inRange<std::int64_t>(1, 5);
        std::vector<std::int64_t> first_rows = {0};
        for (std::int64_t g = 0; g < groups; ++g) {
            first_rows.push_back(first_rows.back() + *rc::gen::element<std::int64_t>(0, 1, 5, 40, 250));
        }
        const auto n = *rc::gen::inRange<std::int64_t>(0, 150);
        const auto k = *rc::gen::element<std::int64_t>(0, 1, 7, 256, 300);
        const auto order = *rc::gen::element(WeightOrder::out_in, WeightOrder::in_out);
        const DType dtype = *rc::gen::element(DType::f32, DType::bf16);
        const Tensor x = test::random_tensor(1, {first_rows.back(), k}, dtype);
        const bool out_in = order == WeightOrder::out_in;
        const Tensor w = test::random_tensor(2, {groups, out_in ? n : k, out_in ? k : n}, dtype);
        Tensor expected({first_rows.back(), n}, dtype);
        reference->grouped_matmul(x, w, order, first_rows, expected);
        Tensor y = test::random_tensor(3, {first_rows.back(), n}, dtype);
        onednn->grouped_matmul(x, w, order, first_rows, y);
        RC_ASSERT(test::difference(y, expected, test::tolerance(dtype)) == "");
    }));
}

TEST_CASE("the sets of kernels say what they are") {
    CHECK(make_kernels(KernelSet::reference)->describe().starts_with("reference ("));
    CHECK(make_kernels(KernelSet::onednn)->describe().starts_with("oneDNN "));
}

}  // namespace
}  // namespace shardplan::kernels
