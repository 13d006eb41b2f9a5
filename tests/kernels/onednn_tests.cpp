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

TEST_CASE("the sets of kernels say what they are") {
    CHECK(make_kernels(KernelSet::reference)->describe().starts_with("reference ("));
    CHECK(make_kernels(KernelSet::onednn)->describe().starts_with("oneDNN "));
}

}  // namespace
}  // namespace shardplan::kernels
