// The bodies of element_loops.h for any number of lanes. Part of element_loops.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/reference/element_loops.h"
#include "kernels/reference/rows.h"
#include "kernels/reference/vector_math.h"

namespace shardplan::kernels {

SHARDPLAN_INLINE void store_one(float* to, float value) {
    *to = value;
}

SHARDPLAN_INLINE void store_one(std::uint16_t* to, float value) {
    *to = tensor::bf16_from_float(value);
}

/// Neighbouring elements that are computed together, as vectors of floats; of bf16 the first and the second of each
/// pair, which is cheaper than to keep their order.
template <int lanes, typename T>
struct Group {
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = sizeof(float) / sizeof(T);
    static constexpr int size = parts * lanes;

    SHARDPLAN_INLINE static void load(Float (&to)[parts], const T* from) {
        if constexpr (parts == 1) {
            std::memcpy(&to[0], from, sizeof(Float));
        } else {
            load_pairs<lanes>(to[0], to[1], from);
        }
    }
    SHARDPLAN_INLINE static void store(T* to, const Float (&from)[parts]) {
        if constexpr (parts == 1) {
            std::memcpy(to, &from[0], sizeof(Float));
        } else {
            store_pairs<lanes>(to, from[0], from[1]);
        }
    }
};

/// Calls op(vector) for all of x. What does not fill a group passes through the same loop, from a copy: compiled a
/// second time, its roundings might differ.
template <int lanes, typename T, typename Op>
SHARDPLAN_INLINE void map_loop(const T* x, std::int64_t count, T* y, Op op) {
    using G = Group<lanes, T>;
    const std::int64_t whole = count - count % G::size;
    T rest[G::size] = {};
    std::copy(x + whole, x + count, rest);
    const T* from = x;
    T* to = y;
    std::int64_t end = whole;
    for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t i = 0; i < end; i += G::size) {
            typename G::Float values[G::parts];
            G::load(values, from + i);
            for (int p = 0; p < G::parts; ++p) {
                op(values[p]);
            }
            G::store(to + i, values);
        }
        from = to = rest;
        end = whole < count ? G::size : 0;
    }
    std::copy(rest, rest + (count - whole), y + whole);
}

/// The same for op(a, b), which leaves the result in a.
template <int lanes, typename T, typename Op>
SHARDPLAN_INLINE void zip_loop(const T* a, const T* b, std::int64_t count, T* y, Op op) {
    using G = Group<lanes, T>;
    const std::int64_t whole = count - count % G::size;
    T rest_a[G::size] = {};
    T rest_b[G::size] = {};
    std::copy(a + whole, a + count, rest_a);
    std::copy(b + whole, b + count, rest_b);
    const T* left = a;
    const T* right = b;
    T* to = y;
    std::int64_t end = whole;
    for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t i = 0; i < end; i += G::size) {
            typename G::Float values[G::parts];
            typename G::Float others[G::parts];
            G::load(values, left + i);
            G::load(others, right + i);
            for (int p = 0; p < G::parts; ++p) {
                op(values[p], others[p]);
            }
            G::store(to + i, values);
        }
        left = to = rest_a;
        right = rest_b;
        end = whole < count ? G::size : 0;
    }
    std::copy(rest_a, rest_a + (count - whole), y + whole);
}

// Function objects, because a lambda would not be inlined into a function with a target attribute.
template <int lanes, Map op>
struct MapOp {
    using Float = typename Lane<lanes>::Float;
    float parameter = 0.0F;
    float inverse = 0.0F;

    SHARDPLAN_INLINE void operator()(Float& x) const {
        if constexpr (op == Map::silu) {
            times_sigmoid<lanes>(x, Float(x));
        } else if constexpr (op == Map::gelu) {
            times_gauss<lanes>(x);
        } else if constexpr (op == Map::gelu_tanh) {
            // 0.5 x (1 + tanh(z)) = x / (1 + exp(-2 z))
            times_sigmoid<lanes>(x, x * (x * x * 0.0713548162726F + 1.59576912161F));
        } else if constexpr (op == Map::quick_gelu) {
            times_sigmoid<lanes>(x, x * 1.702F);
        } else if constexpr (op == Map::relu) {
            x = x < 0.0F ? Float{} : x;
        } else if constexpr (op == Map::relu2) {
            x = x < 0.0F ? Float{} : x * x;
        } else if constexpr (op == Map::scale) {
            x *= parameter;
        } else if constexpr (op == Map::softcap) {
            x /= parameter;
            tanh_vector<lanes>(x);
            x *= parameter;
        } else {
            x = x < -parameter ? Float{} - parameter : x;
            x = x > parameter ? Float{} + parameter : x;
        }
    }
};

template <int lanes, Map op>
struct GluOp {
    using Float = typename Lane<lanes>::Float;
    SHARDPLAN_INLINE void operator()(Float& gate, const Float& up) const {
        MapOp<lanes, op>{}(gate);
        gate *= up;
    }
};

template <int lanes>
struct AddOp {
    using Float = typename Lane<lanes>::Float;
    SHARDPLAN_INLINE void operator()(Float& a, const Float& b) const { a += b; }
};

template <int lanes>
struct AddScaledOp {
    using Float = typename Lane<lanes>::Float;
    float factor = 0.0F;
    SHARDPLAN_INLINE void operator()(Float& sum, const Float& x) const { sum += factor * x; }
};

template <int lanes>
struct ClampedGluOp {
    using Float = typename Lane<lanes>::Float;
    float limit = 0.0F;
    SHARDPLAN_INLINE void operator()(Float& gate, const Float& up) const {
        gate = gate > limit ? Float{} + limit : gate;
        MapOp<lanes, Map::quick_gelu>{}(gate);
        Float factor = up;
        MapOp<lanes, Map::clip>{limit}(factor);
        gate *= factor + 1.0F;
    }
};

template <int lanes>
struct HalfOp {
    using Float = typename Lane<lanes>::Float;
    using Word = typename Lane<lanes>::Word;
    /// What stands in x are the bits of f16 moved up by 16, as load gives them.
    SHARDPLAN_INLINE void operator()(Float& x) const {
        Word bits;
        std::memcpy(&bits, &x, sizeof(bits));
        const Word magnitude = (bits >> 16) & 0x7fffU;
        // The bits moved to float's place have an exponent that is 112 too small; the product also normalises
        // subnormals.
        const Word moved = magnitude << 13;
        Float scaled;
        std::memcpy(&scaled, &moved, sizeof(scaled));
        scaled *= 0x1p112F;
        Word result;
        std::memcpy(&result, &scaled, sizeof(result));
        result |= magnitude >= 0x7c00U ? Word{} + 0x7f800000U : Word{};
        result |= bits & 0x80000000U;
        std::memcpy(&x, &result, sizeof(x));
    }
};

template <int lanes, typename T>
SHARDPLAN_INLINE void map_body(Map op, float parameter, const T* x, std::int64_t count, T* y) {
    switch (op) {
        case Map::silu: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::silu>{});
        case Map::gelu: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::gelu>{});
        case Map::gelu_tanh: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::gelu_tanh>{});
        case Map::quick_gelu: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::quick_gelu>{});
        case Map::relu: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::relu>{});
        case Map::relu2: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::relu2>{});
        case Map::scale: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::scale>{parameter});
        case Map::softcap: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::softcap>{parameter});
        case Map::clip: return map_loop<lanes>(x, count, y, MapOp<lanes, Map::clip>{parameter});
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void glu_body(Activation activation, const T* gate, const T* up, std::int64_t count, T* y) {
    switch (activation) {
        case Activation::silu: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::silu>{});
        case Activation::gelu: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::gelu>{});
        case Activation::gelu_tanh: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::gelu_tanh>{});
        case Activation::quick_gelu: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::quick_gelu>{});
        case Activation::relu: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::relu>{});
        case Activation::relu2: return zip_loop<lanes>(gate, up, count, y, GluOp<lanes, Map::relu2>{});
    }
}

template <int lanes>
SHARDPLAN_INLINE void widen_half_body(const std::uint16_t* from, std::int64_t count, float* to) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        typename Lane<lanes>::Float x;
        load<lanes>(x, from + i);
        HalfOp<lanes>{}(x);
        store<lanes>(to + i, x);
    }
    if (i < count) {
        std::uint16_t rest[lanes] = {};
        std::copy(from + i, from + count, rest);
        typename Lane<lanes>::Float x;
        load<lanes>(x, rest);
        HalfOp<lanes>{}(x);
        std::memcpy(to + i, &x, static_cast<std::size_t>(count - i) * sizeof(float));
    }
}

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
