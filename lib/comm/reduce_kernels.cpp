#include <array>
#include <cstring>

#include "comm/ordered_reduce.h"

// The bodies are always_inline templates, instantiated inside of functions that carry a target attribute: one source
// for several instruction sets. Vectors are passed by reference only, because passing them by value would depend on
// the target's calling convention.
#define SHARDPLAN_INLINE inline __attribute__((always_inline))

namespace shardplan::comm {

using tensor::DType;

namespace {

template <typename T, int width>
struct VectorOf {
    typedef T Type __attribute__((vector_size(width)));
};
template <typename T, int width>
using Vector = typename VectorOf<T, width>::Type;

/// `width` bytes of elements that are stored as they are accumulated.
template <typename T, int width>
struct Plain {
    static constexpr int element = sizeof(T);
    Vector<T, width> values;

    SHARDPLAN_INLINE void load(const std::byte* from) { std::memcpy(&values, from, width); }
    SHARDPLAN_INLINE void store(std::byte* to) const { std::memcpy(to, &values, width); }
    template <typename Op>
    SHARDPLAN_INLINE void combine(const Plain& other) {
        Op::combine(values, other.values);
    }
};

/// `width` bytes of bf16 as f32: of each pair in a word the first and the second (little-endian).
template <int width>
struct Bf16 {
    static constexpr int element = 2;
    using Words = Vector<std::uint32_t, width>;
    using Floats = Vector<float, width>;
    Floats first;
    Floats second;

    SHARDPLAN_INLINE void load(const std::byte* from) {
        Words pairs;
        std::memcpy(&pairs, from, width);
        const Words low = pairs << 16;
        const Words high = pairs & 0xffff0000U;
        std::memcpy(&first, &low, width);
        std::memcpy(&second, &high, width);
    }
    SHARDPLAN_INLINE void store(std::byte* to) const {
        Words low;
        Words high;
        round(first, low);
        round(second, high);
        const Words pairs = (low >> 16) | (high & 0xffff0000U);
        std::memcpy(to, &pairs, width);
    }
    template <typename Op>
    SHARDPLAN_INLINE void combine(const Bf16& other) {
        Op::combine(first, other.first);
        Op::combine(second, other.second);
    }

private:
    /// tensor::bf16_from_float in the upper half of each word.
    SHARDPLAN_INLINE static void round(const Floats& values, Words& words) {
        std::memcpy(&words, &values, width);
        const Words quiet = words | 0x00400000U;
        const Words rounded = words + 0x7fffU + ((words >> 16) & 1U);
        words = values == values ? rounded : quiet;
    }
};

struct Sum {
    template <typename T>
    SHARDPLAN_INLINE static void combine(T& a, const T& b) {
        a += b;
    }
};

struct Max {
    template <typename T>
    SHARDPLAN_INLINE static void combine(T& a, const T& b) {
        // b != b: NaN; a NaN in `a` stays, since nothing compares greater.
        a = b > a ? b : a;
        a = b != b ? b : a;
    }
};

/// `blocks` blocks of `width` bytes of all sources, from `offset` on.
template <typename Block, typename Op, int width, int blocks>
SHARDPLAN_INLINE void reduce_at(std::span<const std::byte* const> sources, std::int64_t offset, std::byte* out) {
    Block sum[blocks];
#pragma GCC unroll 4
    for (int v = 0; v < blocks; ++v) {
        sum[v].load(sources[0] + offset + v * width);
    }
    for (std::size_t s = 1; s < sources.size(); ++s) {
#pragma GCC unroll 4
        for (int v = 0; v < blocks; ++v) {
            Block next;
            next.load(sources[s] + offset + v * width);
            sum[v].template combine<Op>(next);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < blocks; ++v) {
        sum[v].store(out + offset + v * width);
    }
}

template <typename Block, typename Op, int width>
SHARDPLAN_INLINE void reduce_body(std::span<const std::byte* const> sources, std::int64_t count, std::byte* out) {
    const std::int64_t bytes = count * Block::element;
    std::int64_t i = 0;
    for (; i + 4 * width <= bytes; i += 4 * width) {
        reduce_at<Block, Op, width, 4>(sources, i, out);
    }
    for (; i + width <= bytes; i += width) {
        reduce_at<Block, Op, width, 1>(sources, i, out);
    }
    if (i == bytes) {
        return;
    }
    const auto rest = static_cast<std::size_t>(bytes - i);
    std::array<std::byte, width> part{};
    std::memcpy(part.data(), sources[0] + i, rest);
    Block sum;
    sum.load(part.data());
    for (const std::byte* source : sources.subspan(1)) {
        std::memcpy(part.data(), source + i, rest);
        Block next;
        next.load(part.data());
        sum.template combine<Op>(next);
    }
    sum.store(part.data());
    std::memcpy(out + i, part.data(), rest);
}

#define SHARDPLAN_REDUCE_KERNELS(set, width, attribute)                                                          \
    template <typename Block, typename Op>                                                                       \
    attribute void reduce_##set(std::span<const std::byte* const> sources, std::int64_t count, std::byte* out) { \
        reduce_body<Block, Op, width>(sources, count, out);                                                      \
    }                                                                                                            \
    template <typename Op>                                                                                       \
    ReduceKernels::Kernel float_kernel_##set(DType dtype) {                                                      \
        switch (dtype) {                                                                                         \
            case DType::f32: return reduce_##set<Plain<float, width>, Op>;                                       \
            case DType::f64: return reduce_##set<Plain<double, width>, Op>;                                      \
            case DType::bf16: return reduce_##set<Bf16<width>, Op>;                                              \
            default: return nullptr;                                                                             \
        }                                                                                                        \
    }                                                                                                            \
    ReduceKernels::Kernel find_##set(Reduction reduction, DType dtype) {                                         \
        if (reduction == Reduction::sum) {                                                                       \
            return float_kernel_##set<Sum>(dtype);                                                               \
        }                                                                                                        \
        switch (dtype) {                                                                                         \
            case DType::i32: return reduce_##set<Plain<std::int32_t, width>, Max>;                               \
            case DType::i64: return reduce_##set<Plain<std::int64_t, width>, Max>;                               \
            default: return float_kernel_##set<Max>(dtype);                                                      \
        }                                                                                                        \
    }

SHARDPLAN_REDUCE_KERNELS(baseline, 16, )
#if defined(__x86_64__)
SHARDPLAN_REDUCE_KERNELS(avx2, 32, __attribute__((target("avx2"))))
SHARDPLAN_REDUCE_KERNELS(avx512, 64, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2"))))
#endif

std::vector<ReduceKernels> find_available() {
    std::vector<ReduceKernels> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        found.push_back({"avx512", find_avx512});
    }
    if (__builtin_cpu_supports("avx2")) {
        found.push_back({"avx2", find_avx2});
    }
#endif
    found.push_back({"baseline", find_baseline});
    return found;
}

}  // namespace

const std::vector<ReduceKernels>& available_reduce_kernels() {
    static const std::vector<ReduceKernels> available = find_available();
    return available;
}

}  // namespace shardplan::comm
