// What both implementations of the product share: the checks of its arguments.
#pragma once

#include "kernels/huge_buffer.h"
#include "kernels/kernels.h"

namespace shardplan::kernels {

/// Rows, outputs and inputs of y[m, n] = x[m, k] W^T, leading dimensions flattened.
struct MatmulShape {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    friend auto operator<=>(const MatmulShape&, const MatmulShape&) = default;
};

/// Throws std::invalid_argument where x, the weight [n, k] of `dtype` and y do not fit each other.
MatmulShape check_matmul(const ConstView& x, std::int64_t n, std::int64_t k, tensor::DType dtype, const View& y);

/// Throws std::invalid_argument where there are not as many results as weights.
void check_parts(std::span<const Weight* const> ws, std::span<const View> ys);

/// {n, k} of a weight as stored; checks its rank and dtype.
struct WeightSize {
    std::int64_t outputs = 0;
    std::int64_t inputs = 0;
};
WeightSize check_weight(std::string_view kernel, const ConstView& w, WeightOrder order);

/// Checks what grouped_matmul takes; {n, k} of each group's weight.
WeightSize check_groups(const ConstView& x, const ConstView& w, WeightOrder order,
                        std::span<const std::int64_t> first_rows, const View& y);

/// w as [N, K], whatever the order of the source.
HugeBuffer natural_copy(const ConstView& w, WeightOrder order, WeightSize size);

}  // namespace shardplan::kernels
