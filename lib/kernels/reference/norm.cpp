#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

struct Sums {
    double sum = 0.0;
    double squares = 0.0;
};

Sums sums_of(const float* row, std::int64_t n) {
    Sums sums;
    tile_functions().norm_sums(row, n, sums.sum, sums.squares);
    return sums;
}

struct Affine {
    std::vector<float> weight;  ///< empty: ones
    std::vector<float> bias;    ///< empty: zeros
};

std::vector<float> floats_of(std::string_view name, const ConstView& view, std::int64_t size, DType dtype) {
    if (absent(view)) {
        return {};
    }
    check_shape("norm", name, view.shape, {size});
    check_dtype("norm", name, view.dtype, dtype);
    std::vector<float> values(static_cast<std::size_t>(size));
    load_floats(view, 0, size, values.data());
    return values;
}

Affine affine_of(const ConstView& x, const ConstView& w, const ConstView& b, const NormParams& params) {
    Affine affine{floats_of("w", w, x.shape.back(), x.dtype), floats_of("b", b, x.shape.back(), x.dtype)};
    for (float& weight : affine.weight) {
        weight += params.weight_offset;
    }
    return affine;
}

/// In place; `size` is that of the whole normalised dimension, n that of the row.
void normalise(float* row, std::int64_t n, const Sums& sums, std::int64_t size, const Affine& affine,
               const NormParams& params) {
    const auto count = static_cast<double>(size);
    const double mean = params.kind == NormKind::layer ? sums.sum / count : 0.0;
    const double variance = std::max(0.0, sums.squares / count - mean * mean);
    const auto shift = static_cast<float>(mean);
    const auto factor = static_cast<float>(1.0 / std::sqrt(variance + params.eps));
    tile_functions().normalise(row, n, shift, factor, affine.weight.empty() ? nullptr : affine.weight.data(),
                               affine.bias.empty() ? nullptr : affine.bias.data());
}

void check_rows(const ConstView& x, const View& y) {
    if (x.shape.empty()) {
        reject("norm", "x has no dimension to normalise");
    }
    check_float("norm", "x", x.dtype);
    check_dtype("norm", "y", y.dtype, x.dtype);
    check_shape("norm", "y", y.shape, x.shape);
}

tensor::Shape statistics_shape(const ConstView& x) {
    if (x.shape.empty()) {
        reject("norm_statistics", "x has no dimension to normalise");
    }
    tensor::Shape shape = x.shape;
    shape.back() = 2;
    return shape;
}

/// Calls work(row number, row as floats) for each row of x.
template <typename Work>
void for_each_row(const ConstView& x, Work work) {
    const std::int64_t rows = leading_count(x.shape);
    const std::int64_t n = x.shape.back();
#pragma omp parallel if (worth_threads(rows * n))
    {
        std::vector<float> row(static_cast<std::size_t>(n));
#pragma omp for schedule(static)
        for (std::int64_t r = 0; r < rows; ++r) {
            load_floats(x, r * n, n, row.data());
            work(r, row.data());
        }
    }
}

}  // namespace

void ReferenceKernels::norm(ConstView x, ConstView w, ConstView b, const NormParams& params, View y) const {
    check_rows(x, y);
    const Affine affine = affine_of(x, w, b, params);
    const std::int64_t n = x.shape.back();
    for_each_row(x, [&](std::int64_t r, float* row) {
        normalise(row, n, sums_of(row, n), n, affine, params);
        store_floats(row, n, y, r * n);
    });
}

void ReferenceKernels::norm_statistics(ConstView x, View stats) const {
    check_float("norm_statistics", "x", x.dtype);
    check_dtype("norm_statistics", "stats", stats.dtype, DType::f64);
    check_shape("norm_statistics", "stats", stats.shape, statistics_shape(x));
    const std::int64_t n = x.shape.back();
    for_each_row(x, [&](std::int64_t r, const float* row) {
        const Sums sums = sums_of(row, n);
        stats.as<double>()[2 * r] = sums.sum;
        stats.as<double>()[2 * r + 1] = sums.squares;
    });
}

void ReferenceKernels::norm_apply(ConstView x, ConstView stats, std::int64_t global_size, ConstView w, ConstView b,
                                  const NormParams& params, View y) const {
    check_rows(x, y);
    check_dtype("norm_apply", "stats", stats.dtype, DType::f64);
    check_shape("norm_apply", "stats", stats.shape, statistics_shape(x));
    const std::int64_t n = x.shape.back();
    if (global_size < std::max<std::int64_t>(n, 1)) {
        reject("norm_apply", fmt::format("global_size is {}, the local part has {}", global_size, n));
    }
    const Affine affine = affine_of(x, w, b, params);
    for_each_row(x, [&](std::int64_t r, float* row) {
        normalise(row, n, {stats.as<double>()[2 * r], stats.as<double>()[2 * r + 1]}, global_size, affine, params);
        store_floats(row, n, y, r * n);
    });
}

}  // namespace shardplan::kernels
