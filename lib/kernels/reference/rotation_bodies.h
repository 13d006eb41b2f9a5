// Rotations of heads and their angles (element_loops.h) for any number of lanes. Part of element_loops.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/reference/element_bodies.h"

namespace shardplan::kernels {

/// Turns the pairs of one head.
template <int lanes, typename T>
SHARDPLAN_INLINE void rotate_halves(const T* x, const float* cos, const float* sin, std::int64_t pairs, T* y) {
    using Float = typename Lane<lanes>::Float;
    std::int64_t i = 0;
    for (; i + lanes <= pairs; i += lanes) {
        Float a;
        Float b;
        Float c;
        Float s;
        load<lanes>(a, x + i);
        load<lanes>(b, x + pairs + i);
        load<lanes>(c, cos + i);
        load<lanes>(s, sin + i);
        store<lanes>(y + i, Float(a * c - b * s));
        store<lanes>(y + pairs + i, Float(b * c + a * s));
    }
    for (; i < pairs; ++i) {
        const float a = to_float(x[i]);
        const float b = to_float(x[pairs + i]);
        store_one(y + i, a * cos[i] - b * sin[i]);
        store_one(y + pairs + i, b * cos[i] + a * sin[i]);
    }
}

/// The same for neighbours.
template <int lanes, typename T>
SHARDPLAN_INLINE void rotate_neighbours(const T* x, const float* cos, const float* sin, std::int64_t pairs, T* y) {
    using Float = typename Lane<lanes>::Float;
    std::int64_t i = 0;
    for (; i + lanes <= 2 * pairs; i += lanes) {
        Float value;
        Float c;
        Float s;
        load<lanes>(value, x + i);
        load<lanes>(c, cos + i);
        load<lanes>(s, sin + i);
        typename Lane<lanes>::Pair swapped;
        std::memcpy(&swapped, &value, sizeof(swapped));
        swapped = (swapped >> 32) | (swapped << 32);
        Float other;
        std::memcpy(&other, &swapped, sizeof(other));
        store<lanes>(y + i, Float(value * c + other * s));
    }
    for (; i < 2 * pairs; i += 2) {
        const float a = to_float(x[i]);
        const float b = to_float(x[i + 1]);
        store_one(y + i, a * cos[i] + b * sin[i]);
        store_one(y + i + 1, b * cos[i + 1] + a * sin[i + 1]);
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void rotate_body(const T* x, const HeadRotation& rotation, std::int64_t heads, T* y) {
    for (std::int64_t h = 0; h < heads; ++h, x += rotation.stride, y += rotation.stride) {
        if (rotation.neighbours) {
            rotate_neighbours<lanes>(x, rotation.cos, rotation.sin, rotation.pairs, y);
        } else {
            rotate_halves<lanes>(x, rotation.cos, rotation.sin, rotation.pairs, y);
        }
    }
}

/// Cosines and sines of `lanes` angles. @pre |angle| < 1e6, so that the multiples of pi / 2 are exact in two parts
template <int lanes>
SHARDPLAN_INLINE void cos_sin_vector(const float* angles, float* cos, float* sin) {
    using Floats = typename Lane<lanes>::Float;
    using Doubles = typename Lane<lanes>::Double;
    using Longs = typename Lane<lanes>::Long;
    Floats narrow;
    std::memcpy(&narrow, angles, sizeof(narrow));
    const Doubles x = __builtin_convertvector(narrow, Doubles);
    const Doubles shifter = Doubles{} + 6755399441055744.0;  // 1.5 * 2^52
    const Doubles shifted = x * 0.63661977236758134 + shifter;
    const Doubles n = shifted - shifter;
    Longs quadrant;
    std::memcpy(&quadrant, &shifted, sizeof(quadrant));
    const Doubles r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
    const Doubles z = r * r;
    Doubles s = Doubles{} - 2.4761118067908225e-8;
    s = s * z + 2.7555350538927273e-6;
    s = s * z - 0.00019841263789819084;
    s = s * z + 0.0083333333252127845;
    s = s * z - 0.16666666666631275;
    s = r + r * (z * s);
    Doubles c = Doubles{} + 2.0647282131642147e-9;
    c = c * z - 2.7555560137894322e-7;
    c = c * z + 2.480158093369686e-5;
    c = c * z - 0.0013888888878189272;
    c = c * z + 0.041666666666601611;
    c = 1.0 + z * (z * c - 0.5);
    const Longs odd = (quadrant & 1) != 0;
    Doubles sines = odd ? c : s;
    Doubles cosines = odd ? s : c;
    sines = (quadrant & 2) != 0 ? -sines : sines;
    cosines = ((quadrant + 1) & 2) != 0 ? -cosines : cosines;
    const Floats cos_floats = __builtin_convertvector(cosines, Floats);
    const Floats sin_floats = __builtin_convertvector(sines, Floats);
    std::memcpy(cos, &cos_floats, sizeof(cos_floats));
    std::memcpy(sin, &sin_floats, sizeof(sin_floats));
}

template <int lanes>
SHARDPLAN_INLINE void cos_sin_body(float position, const float* frequencies, std::int64_t count, float* cos,
                                   float* sin) {
    constexpr int width = lanes / 2;  // doubles
    for (std::int64_t i = 0; i < count; i += width) {
        const std::int64_t n = std::min<std::int64_t>(width, count - i);
        float angles[width] = {};
        bool small = true;
        for (std::int64_t j = 0; j < n; ++j) {
            angles[j] = position * frequencies[i + j];
            small = small && std::abs(angles[j]) < 1e6F;
        }
        float cosines[width];
        float sines[width];
        if (small) {
            cos_sin_vector<width>(angles, cosines, sines);
        } else {
            for (std::int64_t j = 0; j < n; ++j) {
                cosines[j] = static_cast<float>(std::cos(static_cast<double>(angles[j])));
                sines[j] = static_cast<float>(std::sin(static_cast<double>(angles[j])));
            }
        }
        std::copy(cosines, cosines + n, cos + i);
        std::copy(sines, sines + n, sin + i);
    }
}

}  // namespace shardplan::kernels
