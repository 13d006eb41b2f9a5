// Vectors of a number of lanes that is a template parameter: what the loops of several instruction sets are made of.
//
// The bodies are always_inline templates, instantiated inside of functions that carry a target attribute: that is how
// one source serves several instruction sets. Vectors are passed by reference only, because passing them by value would
// depend on the target's calling convention.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/reference/tiles.h"
#include "tensor/dtype.h"

#define SHARDPLAN_INLINE inline __attribute__((always_inline))

namespace shardplan::kernels {

template <int lanes>
struct Lane {
    typedef float Float __attribute__((vector_size(lanes * 4)));
    typedef std::int32_t Int __attribute__((vector_size(lanes * 4)));
    typedef std::uint32_t Word __attribute__((vector_size(lanes * 4)));
    typedef std::uint16_t Half __attribute__((vector_size(lanes * 2)));
    typedef std::int8_t Byte __attribute__((vector_size(lanes)));
};

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const float* from) {
    std::memcpy(&to, from, sizeof(to));
}

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const std::uint16_t* from) {
    typename Lane<lanes>::Half half;
    std::memcpy(&half, from, sizeof(half));
    const auto word = __builtin_convertvector(half, typename Lane<lanes>::Word) << 16;
    std::memcpy(&to, &word, sizeof(to));
}

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const std::int8_t* from) {
    typename Lane<lanes>::Byte bytes;
    typename Lane<lanes>::Int wide;
#if defined(__x86_64__)
    if constexpr (lanes >= 8) {  // compilers take bytes apart one by one
        struct Packed {
            std::int8_t bytes[lanes];
        };
        asm("vpmovsxbd %1, %0" : "=v"(wide) : "m"(*reinterpret_cast<const Packed*>(from)));
        to = __builtin_convertvector(wide, typename Lane<lanes>::Float);
        return;
    }
#endif
    std::memcpy(&bytes, from, sizeof(bytes));
    wide = __builtin_convertvector(bytes, typename Lane<lanes>::Int);
    to = __builtin_convertvector(wide, typename Lane<lanes>::Float);
}

/// Pairs of bf16 one behind the other: the first of each, and the second.
template <int lanes>
SHARDPLAN_INLINE void load_pairs(typename Lane<lanes>::Float& first, typename Lane<lanes>::Float& second,
                                 const void* from) {
    typename Lane<lanes>::Word pair;
    std::memcpy(&pair, from, sizeof(pair));
    const auto low = pair << 16;
    const auto high = pair & 0xffff0000U;
    std::memcpy(&first, &low, sizeof(low));
    std::memcpy(&second, &high, sizeof(high));
}

SHARDPLAN_INLINE float to_float(float value) {
    return value;
}

SHARDPLAN_INLINE float to_float(std::uint16_t bits) {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value = 0.0F;
    std::memcpy(&value, &word, sizeof(value));
    return value;
}

SHARDPLAN_INLINE float to_float(std::int8_t value) {
    return static_cast<float>(value);
}

/// The upper half is added to the lower one until one lane is left.
template <int lanes>
SHARDPLAN_INLINE float sum_lanes(const typename Lane<lanes>::Float& vector) {
    if constexpr (lanes > 4) {
        using Half = typename Lane<lanes / 2>::Float;
        Half low;
        Half high;
        std::memcpy(&low, &vector, sizeof(low));
        std::memcpy(&high, reinterpret_cast<const char*>(&vector) + sizeof(low), sizeof(high));
        return sum_lanes<lanes / 2>(low + high);
    } else {
        using Int = typename Lane<4>::Int;
        const auto pairs = vector + __builtin_shuffle(vector, Int{2, 3, 0, 1});
        return pairs[0] + pairs[1];
    }
}

template <typename T>
SHARDPLAN_INLINE Matrix<T> at(Matrix<T> m, std::int64_t row, std::int64_t col) {
    return {m.data + row * m.stride + col, m.stride};
}

/// exp(x) for x <= 0: 2^n exp(r) with |r| <= ln(2) / 2, and the Taylor polynomial of degree 7 (remainder below 1e-8).
template <int lanes>
SHARDPLAN_INLINE void exp_vector(typename Lane<lanes>::Float& x) {
    using Float = typename Lane<lanes>::Float;
    using Int = typename Lane<lanes>::Int;
    const Float lowest = Float{} - 86.0F;
    const Int tiny = x < lowest;
    const Float clamped = tiny ? lowest : x;
    // Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const Float shifter = Float{} + 12582912.0F;
    const Float shifted = clamped * 1.44269504088896341F + shifter;
    const Float n = shifted - shifter;
    const Float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
    Float sum = Float{} + 1.0F / 5040;
    sum = sum * r + 1.0F / 720;
    sum = sum * r + 1.0F / 120;
    sum = sum * r + 1.0F / 24;
    sum = sum * r + 1.0F / 6;
    sum = sum * r + 0.5F;
    sum = sum * r + 1.0F;
    sum = sum * r + 1.0F;
    const Int power = (__builtin_convertvector(n, Int) + 127) << 23;
    Float scale;
    std::memcpy(&scale, &power, sizeof(scale));
    x = tiny ? Float{} : sum * scale;
}

}  // namespace shardplan::kernels
