#include "kernels/reference/panel_product.h"

#include <doctest/doctest.h>

#include <array>

#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("panels: a row has the same bits among few and among many rows, alone and in a group") {
    constexpr std::int64_t rows = 230, n = 587, k = 301;
    for (const DType dtype : {DType::f32, DType::bf16}) {
        const Tensor x = test::random_tensor(1, {rows, k}, dtype);
        const Tensor w = test::random_tensor(2, {k, n}, dtype);
        Tensor all({rows, n}), cut({rows, n});
        const std::byte* data = w.view().data;
        const PanelGroup whole{data, 0, rows};
        multiply_panels(x, {&whole, 1}, {n, k}, all);
        const std::array groups = {PanelGroup{data, 0, 1}, PanelGroup{data, 1, 1}, PanelGroup{data, 1, 7},
                                   PanelGroup{data, 7, 30}, PanelGroup{data, 30, rows}};
        multiply_panels(x, groups, {n, k}, cut);
        CHECK(cut == all);
        for (const std::int64_t row : {0, 29, 229}) {
            for (const std::int64_t column : {0, 511, 512, 586}) {
                double exact = 0.0;
                for (std::int64_t i = 0; i < k; ++i) {
                    exact += x.at({row, i}) * w.at({i, column});
                }
                CHECK(all.at({row, column}) == doctest::Approx(exact).epsilon(1e-4));
            }
        }
    }
}

}  // namespace
}  // namespace shardplan::kernels
