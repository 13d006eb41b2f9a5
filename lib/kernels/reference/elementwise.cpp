#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/reference/element_loops.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

constexpr std::int64_t chunk = 1024;  // elements converted at once, as floats in the first cache

/// Calls work(first element, elements) for pieces of n elements, by several threads where that is worth it.
template <typename Work>
void for_each_piece(std::int64_t n, Work work) {
    constexpr std::int64_t piece = 8 * chunk;
    if (!worth_threads(n)) {
        work(std::int64_t{0}, n);
        return;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t begin = 0; begin < n; begin += piece) {
        work(begin, std::min(piece, n - begin));
    }
}

/// The same in chunks for which work(first element, elements) has room.
template <typename Work>
void for_each_chunk(std::int64_t n, Work work) {
#pragma omp parallel for schedule(static) if (worth_threads(n))
    for (std::int64_t begin = 0; begin < n; begin += chunk) {
        work(begin, std::min(chunk, n - begin));
    }
}

/// function(functions for the type of x and y, x, elements, y) for all elements.
template <typename Function>
void map(std::string_view kernel, const ConstView& x, const View& y, Function function) {
    check_float(kernel, "x", x.dtype);
    check_float(kernel, "y", y.dtype);
    check_shape(kernel, "y", y.shape, x.shape);
    const auto direct = [&]<typename T>(const T* from, T* to) {
        for_each_piece(x.count(), [&](std::int64_t begin, std::int64_t n) {
            function(element_functions<T>(), from + begin, n, to + begin);
        });
    };
    if (x.dtype == y.dtype) {
        x.dtype == DType::f32 ? direct(x.as<float>(), y.as<float>())
                              : direct(x.as<std::uint16_t>(), y.as<std::uint16_t>());
        return;
    }
    for_each_chunk(x.count(), [&](std::int64_t begin, std::int64_t n) {
        float values[chunk];
        load_floats(x, begin, n, values);
        function(element_functions<float>(), static_cast<const float*>(values), n, values);
        store_floats(values, n, y, begin);
    });
}

/// function(functions for the type of a, b and y, a, b, elements, y) for all elements.
template <typename Function>
void zip(std::string_view kernel, const ConstView& a, const ConstView& b, const View& y, Function function) {
    check_elementwise(kernel, a, b, y);
    const auto direct = [&]<typename T>(const T* left, const T* right, T* to) {
        for_each_piece(a.count(), [&](std::int64_t begin, std::int64_t n) {
            function(element_functions<T>(), left + begin, right + begin, n, to + begin);
        });
    };
    if (a.dtype == y.dtype && b.dtype == y.dtype) {
        y.dtype == DType::f32 ? direct(a.as<float>(), b.as<float>(), y.as<float>())
                              : direct(a.as<std::uint16_t>(), b.as<std::uint16_t>(), y.as<std::uint16_t>());
        return;
    }
    for_each_chunk(a.count(), [&](std::int64_t begin, std::int64_t n) {
        float left[chunk];
        float right[chunk];
        load_floats(a, begin, n, left);
        load_floats(b, begin, n, right);
        function(element_functions<float>(), static_cast<const float*>(left), static_cast<const float*>(right), n,
                 left);
        store_floats(left, n, y, begin);
    });
}

void map(std::string_view kernel, const ConstView& x, Map op, float parameter, const View& y) {
    // Of NaN the loops of bf16 want an ordinary one.
    parameter = std::isnan(parameter) ? std::numeric_limits<float>::quiet_NaN() : parameter;
    map(kernel, x, y, [&](const auto& functions, const auto* from, std::int64_t n, auto* to) {
        functions.map(op, parameter, from, n, to);
    });
}

/// The activations stand first and in the same order.
Map map_of(Activation activation) {
    static_assert(static_cast<int>(Map::silu) == static_cast<int>(Activation::silu) &&
                  static_cast<int>(Map::relu2) == static_cast<int>(Activation::relu2));
    return static_cast<Map>(activation);
}

/// Adds one piece of the bias to elements [begin, begin + n).
void add_piece(const ConstView& x, const ConstView& bias, std::int64_t column, std::int64_t begin, std::int64_t n,
               const View& y) {
    if (x.dtype == y.dtype && bias.dtype == y.dtype) {
        if (y.dtype == DType::f32) {
            element_loops().f32.add(x.as<float>() + begin, bias.as<float>() + column, n, y.as<float>() + begin);
        } else {
            element_loops().bf16.add(x.as<std::uint16_t>() + begin, bias.as<std::uint16_t>() + column, n,
                                     y.as<std::uint16_t>() + begin);
        }
        return;
    }
    float values[chunk];
    float addend[chunk];
    load_floats(x, begin, n, values);
    load_floats(bias, column, n, addend);
    element_loops().f32.add(values, addend, n, values);
    store_floats(values, n, y, begin);
}

}  // namespace

void ReferenceKernels::activate(ConstView x, Activation activation, View y) const {
    map("activate", x, map_of(activation), 0.0F, y);
}

void ReferenceKernels::glu(ConstView gate, ConstView up, Activation activation, View y) const {
    zip("glu", gate, up, y, [&](const auto& functions, const auto* g, const auto* u, std::int64_t n, auto* to) {
        functions.glu(activation, g, u, n, to);
    });
}

void ReferenceKernels::add(ConstView a, ConstView b, View y) const {
    zip("add", a, b, y, [](const auto& functions, const auto* left, const auto* right, std::int64_t n, auto* to) {
        functions.add(left, right, n, to);
    });
}

void ReferenceKernels::add_bias(ConstView x, ConstView bias, View y) const {
    check_float("add_bias", "x", x.dtype);
    check_float("add_bias", "bias", bias.dtype);
    check_float("add_bias", "y", y.dtype);
    check_shape("add_bias", "y", y.shape, x.shape);
    check_rank("add_bias", "bias", bias.shape, 1);
    if (x.shape.empty() || x.shape.back() != bias.shape[0]) {
        reject("add_bias", fmt::format("x {} does not end with the {} values of the bias", tensor::to_string(x.shape),
                                       bias.shape[0]));
    }
    const std::int64_t rows = leading_count(x.shape);
    const std::int64_t width = bias.shape[0];
#pragma omp parallel for collapse(2) schedule(static) if (worth_threads(rows * width))
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t begin = 0; begin < width; begin += chunk) {
            add_piece(x, bias, begin, row * width + begin, std::min(chunk, width - begin), y);
        }
    }
}

void ReferenceKernels::scale(ConstView x, float factor, View y) const {
    map("scale", x, Map::scale, factor, y);
}

void ReferenceKernels::softcap(ConstView x, float cap, View y) const {
    if (!(cap > 0.0F)) {
        reject("softcap", fmt::format("cap is {}, must be positive", cap));
    }
    map("softcap", x, Map::softcap, cap, y);
}

void ReferenceKernels::clip(ConstView x, float limit, View y) const {
    if (!(limit >= 0.0F)) {
        reject("clip", fmt::format("limit is {}, must not be negative", limit));
    }
    map("clip", x, Map::clip, limit, y);
}

void ReferenceKernels::convert(ConstView x, View y) const {
    if (x.dtype != DType::f16) {
        check_float("convert", "x", x.dtype);
    }
    check_float("convert", "y", y.dtype);
    check_shape("convert", "y", y.shape, x.shape);
    for_each_chunk(x.count(), [&](std::int64_t begin, std::int64_t n) {
        float values[chunk];
        float* wide = y.dtype == DType::f32 ? y.as<float>() + begin : values;
        if (x.dtype == DType::f16) {
            element_loops().widen_half(x.as<std::uint16_t>() + begin, n, wide);
        } else {
            load_floats(x, begin, n, wide);
        }
        if (wide == values) {
            store_floats(values, n, y, begin);
        }
    });
}

}  // namespace shardplan::kernels
