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
    typedef std::uint64_t Pair __attribute__((vector_size(lanes * 4)));  ///< two floats in each
    typedef double Double __attribute__((vector_size(lanes * 8)));
    typedef std::int64_t Long __attribute__((vector_size(lanes * 8)));
};

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const float* from) {
    std::memcpy(&to, from, sizeof(to));
}

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const std::uint16_t* from) {
    typename Lane<lanes>::Half half;
    typename Lane<lanes>::Word word;
    std::memcpy(&half, from, sizeof(half));
#if defined(__x86_64__)
    if constexpr (lanes >= 8) {  // compilers widen each half for itself
        asm("vpmovzxwd %1, %0" : "=v"(word) : "vm"(half));
    } else
#endif
    {
        word = __builtin_convertvector(half, typename Lane<lanes>::Word);
    }
    word <<= 16;
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

template <int lanes>
SHARDPLAN_INLINE void store(float* to, const typename Lane<lanes>::Float& from) {
    std::memcpy(to, &from, sizeof(from));
}

/// Rounds as tensor::bf16_from_float.
template <int lanes>
SHARDPLAN_INLINE void store(std::uint16_t* to, const typename Lane<lanes>::Float& from) {
    using Word = typename Lane<lanes>::Word;
    Word bits;
    std::memcpy(&bits, &from, sizeof(bits));
    const Word rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const Word result = from != from ? bits | 0x00400000U : rounded;
    const auto half = __builtin_convertvector(result >> 16, typename Lane<lanes>::Half);
    std::memcpy(to, &half, sizeof(half));
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

/// The opposite of load_pairs, rounded as by store, but for NaN that are widened bf16 or what a computation made: their
/// rounding does not overflow.
template <int lanes>
SHARDPLAN_INLINE void store_pairs(void* to, const typename Lane<lanes>::Float& first,
                                  const typename Lane<lanes>::Float& second) {
    using Word = typename Lane<lanes>::Word;
    Word low;
    Word high;
    std::memcpy(&low, &first, sizeof(low));
    std::memcpy(&high, &second, sizeof(high));
    low += ((low >> 16) & 1U) + 0x7fffU;
    high += ((high >> 16) & 1U) + 0x7fffU;
    const Word pair = (low >> 16) | (high & 0xffff0000U);
    std::memcpy(to, &pair, sizeof(pair));
}

/// Vectors at any address. Unlike a memcpy of a vector they never take the way over the stack, which GCC chooses for
/// some arrays of vectors.
template <int lanes>
struct Loose {
    typedef float Float __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
    typedef std::uint32_t Word __attribute__((vector_size(lanes * 4), aligned(2), may_alias));
    typedef double Twos __attribute__((vector_size(lanes * 4)));  ///< pairs of floats
    typedef double Two __attribute__((aligned(4), may_alias));
};

template <int lanes>
SHARDPLAN_INLINE void get(typename Lane<lanes>::Float& to, const float* from) {
    to = *reinterpret_cast<const typename Loose<lanes>::Float*>(from);
}

template <int lanes>
SHARDPLAN_INLINE void put(float* to, const typename Lane<lanes>::Float& from) {
    *reinterpret_cast<typename Loose<lanes>::Float*>(to) = from;
}

/// As load_pairs, from any address.
template <int lanes>
SHARDPLAN_INLINE void get_pairs(typename Lane<lanes>::Float& first, typename Lane<lanes>::Float& second,
                                const std::uint16_t* from) {
    using Float = typename Lane<lanes>::Float;
    const typename Lane<lanes>::Word pair = *reinterpret_cast<const typename Loose<lanes>::Word*>(from);
    first = reinterpret_cast<Float>(pair << 16);
    second = reinterpret_cast<Float>(pair & 0xffff0000U);
}

/// Keeps a vector in a register where the compiler would load it again for each use.
template <typename Float>
SHARDPLAN_INLINE void keep(Float& vector) {
#if defined(__x86_64__)
    asm("" : "+v"(vector));
#else
    static_cast<void>(vector);
#endif
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

}  // namespace shardplan::kernels
