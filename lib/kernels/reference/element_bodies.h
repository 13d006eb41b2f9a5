// The bodies of element_loops.h for any number of lanes. Part of element_loops.cpp.
#pragma once

#include <algorithm>
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

}  // namespace shardplan::kernels
