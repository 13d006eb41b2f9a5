#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

constexpr std::int64_t chunk = 1024;  // elements handled at once, as floats in the first cache

/// Calls work(first element, elements, scratch) for all chunks of n elements.
template <typename Work>
void for_each_chunk(std::int64_t n, Work work) {
#pragma omp parallel for schedule(static) if (worth_threads(n))
    for (std::int64_t begin = 0; begin < n; begin += chunk) {
        work(begin, std::min(chunk, n - begin));
    }
}

/// y[i] = function(x[i])
template <typename Function>
void map(std::string_view kernel, const ConstView& x, const View& y, Function function) {
    check_float(kernel, "x", x.dtype);
    check_float(kernel, "y", y.dtype);
    check_shape(kernel, "y", y.shape, x.shape);
    for_each_chunk(x.count(), [&](std::int64_t begin, std::int64_t n) {
        float values[chunk];
        load_floats(x, begin, n, values);
        for (std::int64_t i = 0; i < n; ++i) {
            values[i] = function(values[i]);
        }
        store_floats(values, n, y, begin);
    });
}

/// y[i] = function(a[i], b[i])
template <typename Function>
void zip(std::string_view kernel, const ConstView& a, const ConstView& b, const View& y, Function function) {
    check_elementwise(kernel, a, b, y);
    for_each_chunk(a.count(), [&](std::int64_t begin, std::int64_t n) {
        float left[chunk];
        float right[chunk];
        load_floats(a, begin, n, left);
        load_floats(b, begin, n, right);
        for (std::int64_t i = 0; i < n; ++i) {
            left[i] = function(left[i], right[i]);
        }
        store_floats(left, n, y, begin);
    });
}

float sigmoid(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

float gelu_tanh(float x) {
    constexpr float sqrt_two_over_pi = 0.79788456080286536F;
    return 0.5F * x * (1.0F + std::tanh(sqrt_two_over_pi * (x + 0.044715F * x * x * x)));
}

/// Calls work with the activation as a function object, so that the loop around it is compiled for each.
template <typename Work>
void with_activation(Activation activation, Work work) {
    switch (activation) {
        case Activation::silu: return work([](float x) { return x * sigmoid(x); });
        case Activation::gelu:
            return work([](float x) { return 0.5F * x * (1.0F + std::erf(x * 0.70710678118654752F)); });
        case Activation::gelu_tanh: return work(gelu_tanh);
        case Activation::quick_gelu: return work([](float x) { return x * sigmoid(1.702F * x); });
        case Activation::relu: return work([](float x) { return x > 0.0F ? x : 0.0F; });
        case Activation::relu2: return work([](float x) { return x > 0.0F ? x * x : 0.0F; });
    }
    reject("activate", "unknown activation");
}

/// Without branches, unlike tensor::float_from_f16, because whole checkpoints pass through here.
float float_from_half(std::uint16_t half) {
    const auto magnitude = static_cast<std::uint32_t>(half & 0x7fffU);
    // The bits moved to float's place have an exponent that is 112 too small; the product also normalises subnormals.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

}  // namespace

void ReferenceKernels::activate(ConstView x, Activation activation, View y) const {
    with_activation(activation, [&](auto function) { map("activate", x, y, function); });
}

void ReferenceKernels::glu(ConstView gate, ConstView up, Activation activation, View y) const {
    with_activation(activation, [&](auto function) {
        zip("glu", gate, up, y, [function](float g, float u) { return function(g) * u; });
    });
}

void ReferenceKernels::add(ConstView a, ConstView b, View y) const {
    zip("add", a, b, y, [](float left, float right) { return left + right; });
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
            const std::int64_t n = std::min(chunk, width - begin);
            float values[chunk];
            float addend[chunk];
            load_floats(x, row * width + begin, n, values);
            load_floats(bias, begin, n, addend);
            for (std::int64_t i = 0; i < n; ++i) {
                values[i] += addend[i];
            }
            store_floats(values, n, y, row * width + begin);
        }
    }
}

void ReferenceKernels::scale(ConstView x, float factor, View y) const {
    map("scale", x, y, [factor](float value) { return value * factor; });
}

void ReferenceKernels::softcap(ConstView x, float cap, View y) const {
    if (!(cap > 0.0F)) {
        reject("softcap", fmt::format("cap is {}, must be positive", cap));
    }
    map("softcap", x, y, [cap](float value) { return cap * std::tanh(value / cap); });
}

void ReferenceKernels::clip(ConstView x, float limit, View y) const {
    if (!(limit >= 0.0F)) {
        reject("clip", fmt::format("limit is {}, must not be negative", limit));
    }
    map("clip", x, y, [limit](float value) { return std::clamp(value, -limit, limit); });
}

void ReferenceKernels::convert(ConstView x, View y) const {
    if (x.dtype != DType::f16) {
        map("convert", x, y, [](float value) { return value; });
        return;
    }
    check_float("convert", "y", y.dtype);
    check_shape("convert", "y", y.shape, x.shape);
    for_each_chunk(x.count(), [&](std::int64_t begin, std::int64_t n) {
        float values[chunk];
        const std::uint16_t* source = x.as<std::uint16_t>() + begin;
        for (std::int64_t i = 0; i < n; ++i) {
            values[i] = float_from_half(source[i]);
        }
        store_floats(values, n, y, begin);
    });
}

}  // namespace shardplan::kernels
