// Loops over one row of values: conversions and the two passes of a norm. Part of tiles.cpp.
#pragma once

#include <cstdint>

#include "kernels/reference/lanes.h"

namespace shardplan::kernels {

template <int lanes>
SHARDPLAN_INLINE void widen_body(const std::uint16_t* from, std::int64_t count, float* to) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        typename Lane<lanes>::Float x;
        load<lanes>(x, from + i);
        std::memcpy(to + i, &x, sizeof(x));
    }
    for (; i < count; ++i) {
        to[i] = to_float(from[i]);
    }
}

/// As tensor::bf16_from_float.
template <int lanes>
SHARDPLAN_INLINE void narrow_body(const float* from, std::int64_t count, std::uint16_t* to) {
    using Word = typename Lane<lanes>::Word;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        Word bits;
        std::memcpy(&bits, from + i, sizeof(bits));
        const Word rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
        const Word quiet = (bits >> 16) | 0x0040U;
        const Word result = (bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded;
        const auto half = __builtin_convertvector(result, typename Lane<lanes>::Half);
        std::memcpy(to + i, &half, sizeof(half));
    }
    for (; i < count; ++i) {
        to[i] = tensor::bf16_from_float(from[i]);
    }
}

/// In eight independent parts, so that the order of the sums is that of every instruction set. The products of floats
/// are exact in double: fused or not, the bits are the same.
SHARDPLAN_INLINE void norm_sums_body(const float* row, std::int64_t count, double& sum, double& squares) {
    constexpr int parts = 8;
    typedef double Doubles __attribute__((vector_size(parts * 8)));
    typedef float Floats __attribute__((vector_size(parts * 4)));
    Doubles sums = {};
    Doubles products = {};
    std::int64_t i = 0;
    for (; i + parts <= count; i += parts) {
        Floats values;
        std::memcpy(&values, row + i, sizeof(values));
        const auto wide = __builtin_convertvector(values, Doubles);
        sums += wide;
        products += wide * wide;
    }
    sum = 0.0;
    squares = 0.0;
    for (int j = 0; j < parts; ++j) {
        sum += sums[j];
        squares += products[j];
    }
    for (; i < count; ++i) {
        sum += row[i];
        squares += static_cast<double>(row[i]) * row[i];
    }
}

/// row = (row - shift) * factor [* weight] [+ bias]
template <bool weighted, bool biased>
SHARDPLAN_INLINE void normalise_row(float* row, std::int64_t count, float shift, float factor, const float* weight,
                                    const float* bias) {
    for (std::int64_t i = 0; i < count; ++i) {
        float value = (row[i] - shift) * factor;
        if constexpr (weighted) {
            value *= weight[i];
        }
        if constexpr (biased) {
            value += bias[i];
        }
        row[i] = value;
    }
}

SHARDPLAN_INLINE void normalise_body(float* row, std::int64_t count, float shift, float factor, const float* weight,
                                     const float* bias) {
    if (weight != nullptr && bias != nullptr) {
        normalise_row<true, true>(row, count, shift, factor, weight, bias);
    } else if (weight != nullptr) {
        normalise_row<true, false>(row, count, shift, factor, weight, bias);
    } else if (bias != nullptr) {
        normalise_row<false, true>(row, count, shift, factor, weight, bias);
    } else {
        normalise_row<false, false>(row, count, shift, factor, weight, bias);
    }
}

}  // namespace shardplan::kernels
