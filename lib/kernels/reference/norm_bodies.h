// The two passes of a norm over a row (element_loops.h) for any number of lanes. Part of element_loops.cpp.
#pragma once

#include <cstdint>

#include "kernels/reference/element_bodies.h"

namespace shardplan::kernels {

/// Four floats as doubles.
template <int lanes>
SHARDPLAN_INLINE void widen_four(Lane<4>::Double& to, const Lane<4>::Float& from) {
#if defined(__x86_64__)
    if constexpr (lanes >= 8) {  // compilers widen each half for itself
        asm("vcvtps2pd %1, %0" : "=v"(to) : "vm"(from));
        return;
    }
#endif
    to = __builtin_convertvector(from, Lane<4>::Double);
}

/// In 16 independent parts, so that the order of the sums is that of every instruction set. The products of floats
/// are exact in double: fused or not, the bits are the same.
template <int lanes, bool summed, typename T>
SHARDPLAN_INLINE void norm_sums_body(const T* row, std::int64_t count, double& sum, double& squares) {
    using G = Group<4, T>;
    constexpr int parts = 4;
    constexpr int step = parts / G::parts;
    Lane<4>::Double sums[parts] = {};
    Lane<4>::Double products[parts] = {};
    std::int64_t i = 0;
    for (; i + 4 * parts <= count; i += 4 * parts) {
#pragma GCC unroll 4
        for (int g = 0; g < step; ++g) {
            Lane<4>::Float values[G::parts];
            G::load(values, row + i + g * G::size);
#pragma GCC unroll 2
            for (int p = 0; p < G::parts; ++p) {
                Lane<4>::Double wide;
                widen_four<lanes>(wide, values[p]);
                if constexpr (summed) {
                    sums[g * G::parts + p] += wide;
                }
                products[g * G::parts + p] += wide * wide;
            }
        }
    }
    for (int p = 1; p < parts; ++p) {
        sums[0] += sums[p];
        products[0] += products[p];
    }
    double total = (sums[0][0] + sums[0][2]) + (sums[0][1] + sums[0][3]);
    double total_squares = (products[0][0] + products[0][2]) + (products[0][1] + products[0][3]);
    for (; i < count; ++i) {
        const double value = static_cast<double>(to_float(row[i]));
        total += value;
        total_squares += value * value;
    }
    sum = total;
    squares = total_squares;
}

template <int lanes, bool weighted, bool biased, typename T>
SHARDPLAN_INLINE void normalise_row(const T* x, std::int64_t count, const NormScale<T>& scale, T* y) {
    using G = Group<lanes, T>;
    std::int64_t i = 0;
    for (; i + G::size <= count; i += G::size) {
        typename G::Float values[G::parts];
        typename G::Float others[G::parts];
        __builtin_prefetch(x + count + i);  // the next row, which is about to be summed
        G::load(values, x + i);
        for (int p = 0; p < G::parts; ++p) {
            values[p] = (values[p] - scale.shift) * scale.factor;
        }
        if constexpr (weighted) {
            G::load(others, scale.weight + i);
            for (int p = 0; p < G::parts; ++p) {
                values[p] *= others[p] + scale.weight_offset;
            }
        }
        if constexpr (biased) {
            G::load(others, scale.bias + i);
            for (int p = 0; p < G::parts; ++p) {
                values[p] += others[p];
            }
        }
        G::store(y + i, values);
    }
    for (; i < count; ++i) {
        float value = (to_float(x[i]) - scale.shift) * scale.factor;
        if constexpr (weighted) {
            value *= to_float(scale.weight[i]) + scale.weight_offset;
        }
        if constexpr (biased) {
            value += to_float(scale.bias[i]);
        }
        store_one(y + i, value);
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void normalise_body(const T* x, std::int64_t count, const NormScale<T>& scale, T* y) {
    if (scale.weight != nullptr && scale.bias != nullptr) {
        normalise_row<lanes, true, true>(x, count, scale, y);
    } else if (scale.weight != nullptr) {
        normalise_row<lanes, true, false>(x, count, scale, y);
    } else if (scale.bias != nullptr) {
        normalise_row<lanes, false, true>(x, count, scale, y);
    } else {
        normalise_row<lanes, false, false>(x, count, scale, y);
    }
}

}  // namespace shardplan::kernels
