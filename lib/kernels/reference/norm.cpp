#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/checks.h"
#include "kernels/reference/element_loops.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

struct Sums {
    double sum = 0.0;
    double squares = 0.0;
};

void check_affine(const ConstView& x, const ConstView& w, const ConstView& b) {
    for (const auto& [name, view] : {std::pair{"w", w}, std::pair{"b", b}}) {
        if (!absent(view)) {
            check_shape("norm", name, view.shape, {x.shape.back()});
            check_dtype("norm", name, view.dtype, x.dtype);
        }
    }
}

/// `size` is that of the whole normalised dimension, of which w and b are the local part.
template <typename T>
NormScale<T> scale_of(const Sums& sums, std::int64_t size, const ConstView& w, const ConstView& b,
                      const NormParams& params) {
    const auto count = static_cast<double>(size);
    const double mean = params.kind == NormKind::layer ? sums.sum / count : 0.0;
    const double variance = std::max(0.0, sums.squares / count - mean * mean);
    return {.shift = static_cast<float>(mean),
            .factor = static_cast<float>(1.0 / std::sqrt(variance + params.eps)),
            .weight = absent(w) ? nullptr : w.as<T>(),
            .weight_offset = params.weight_offset,
            .bias = absent(b) ? nullptr : b.as<T>()};
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

/// Calls work(row number, row) for each row of x, of its type.
template <typename Work>
void for_each_row(const ConstView& x, Work work) {
    const std::int64_t rows = leading_count(x.shape);
    const std::int64_t n = x.shape.back();
    const auto loop = [&](const auto* data) {
#pragma omp parallel for schedule(static) if (worth_threads(rows * n))
        for (std::int64_t r = 0; r < rows; ++r) {
            work(r, data + r * n);
        }
    };
    x.dtype == DType::f32 ? loop(x.as<float>()) : loop(x.as<std::uint16_t>());
}

template <typename T>
Sums sums_of(const T* row, std::int64_t n, NormKind kind) {
    Sums sums;
    element_functions<T>().norm_sums(row, n, kind == NormKind::layer ? &sums.sum : nullptr, sums.squares);
    return sums;
}

}  // namespace

void ReferenceKernels::norm(ConstView x, ConstView w, ConstView b, const NormParams& params, View y) const {
    check_rows(x, y);
    check_affine(x, w, b);
    const std::int64_t n = x.shape.back();
    for_each_row(x, [&]<typename T>(std::int64_t r, const T* row) {
        const NormScale<T> scale = scale_of<T>(sums_of(row, n, params.kind), n, w, b, params);
        element_functions<T>().normalise(row, n, scale, y.as<T>() + r * n);
    });
}

void ReferenceKernels::norm_statistics(ConstView x, View stats) const {
    check_float("norm_statistics", "x", x.dtype);
    check_dtype("norm_statistics", "stats", stats.dtype, DType::f64);
    check_shape("norm_statistics", "stats", stats.shape, statistics_shape(x));
    const std::int64_t n = x.shape.back();
    for_each_row(x, [&](std::int64_t r, const auto* row) {
        const Sums sums = sums_of(row, n, NormKind::layer);
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
    check_affine(x, w, b);
    for_each_row(x, [&]<typename T>(std::int64_t r, const T* row) {
        const double* sums = stats.as<double>() + 2 * r;
        const NormScale<T> scale = scale_of<T>({sums[0], sums[1]}, global_size, w, b, params);
        element_functions<T>().normalise(row, n, scale, y.as<T>() + r * n);
    });
}

}  // namespace shardplan::kernels
