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

template <typename T, int lanes>
struct VectorOf {
    typedef T Type __attribute__((vector_size(sizeof(T) * lanes)));
};
template <typename T, int lanes>
using Vector = typename VectorOf<T, lanes>::Type;

/// How elements are stored and in which type they are accumulated. `Lanes` of it fill a vector of `width` bytes.
template <typename T>
struct Plain {
    using Wide = T;
    static constexpr int size = sizeof(T);
    template <int lanes>
    SHARDPLAN_INLINE static void load(Vector<T, lanes>& to, const std::byte* from) {
        std::memcpy(&to, from, sizeof(to));
    }
    template <int lanes>
    SHARDPLAN_INLINE static void store(const Vector<T, lanes>& from, std::byte* to) {
        std::memcpy(to, &from, sizeof(from));
    }
};

struct Bf16 {
    using Wide = float;
    static constexpr int size = 2;
    template <int lanes>
    SHARDPLAN_INLINE static void load(Vector<float, lanes>& to, const std::byte* from) {
        Vector<std::uint16_t, lanes> half;
        std::memcpy(&half, from, sizeof(half));
        const auto word = __builtin_convertvector(half, Vector<std::uint32_t, lanes>) << 16;
        std::memcpy(&to, &word, sizeof(to));
    }
    /// tensor::bf16_from_float
    template <int lanes>
    SHARDPLAN_INLINE static void store(const Vector<float, lanes>& from, std::byte* to) {
        Vector<std::uint32_t, lanes> bits;
        std::memcpy(&bits, &from, sizeof(bits));
        const auto rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
        const auto quiet = (bits >> 16) | 0x0040U;
        const auto half = __builtin_convertvector(from == from ? rounded : quiet, Vector<std::uint16_t, lanes>);
        std::memcpy(to, &half, sizeof(half));
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

/// The `vectors` vectors of all sources that begin at element `i`.
template <typename Element, typename Op, int lanes, int vectors>
SHARDPLAN_INLINE void reduce_at(std::span<const std::byte* const> sources, std::int64_t i, std::byte* out) {
    using Wide = Vector<typename Element::Wide, lanes>;
    constexpr int stride = lanes * Element::size;
    const std::int64_t offset = i * Element::size;
    Wide sum[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
        Element::template load<lanes>(sum[v], sources[0] + offset + v * stride);
    }
    for (std::size_t s = 1; s < sources.size(); ++s) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            Wide next;
            Element::template load<lanes>(next, sources[s] + offset + v * stride);
            Op::combine(sum[v], next);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
        Element::template store<lanes>(sum[v], out + offset + v * stride);
    }
}

template <typename Element, typename Op, int width>
SHARDPLAN_INLINE void reduce_body(std::span<const std::byte* const> sources, std::int64_t count, std::byte* out) {
    constexpr int lanes = width / static_cast<int>(sizeof(typename Element::Wide));
    std::int64_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        reduce_at<Element, Op, lanes, 4>(sources, i, out);
    }
    for (; i + lanes <= count; i += lanes) {
        reduce_at<Element, Op, lanes, 1>(sources, i, out);
    }
    if (i == count) {
        return;
    }
    const auto rest = static_cast<std::size_t>((count - i) * Element::size);
    using Wide = Vector<typename Element::Wide, lanes>;
    std::array<std::byte, width> part{};
    std::memcpy(part.data(), sources[0] + i * Element::size, rest);
    Wide sum;
    Element::template load<lanes>(sum, part.data());
    for (const std::byte* source : sources.subspan(1)) {
        std::memcpy(part.data(), source + i * Element::size, rest);
        Wide next;
        Element::template load<lanes>(next, part.data());
        Op::combine(sum, next);
    }
    Element::template store<lanes>(sum, part.data());
    std::memcpy(out + i * Element::size, part.data(), rest);
}

#define SHARDPLAN_REDUCE_KERNELS(set, width, attribute)                                                          \
    template <typename Element, typename Op>                                                                     \
    attribute void reduce_##set(std::span<const std::byte* const> sources, std::int64_t count, std::byte* out) { \
        reduce_body<Element, Op, width>(sources, count, out);                                                    \
    }                                                                                                            \
    template <typename Op>                                                                                       \
    ReduceKernels::Kernel float_kernel_##set(DType dtype) {                                                      \
        switch (dtype) {                                                                                         \
            case DType::f32: return reduce_##set<Plain<float>, Op>;                                              \
            case DType::f64: return reduce_##set<Plain<double>, Op>;                                             \
            case DType::bf16: return reduce_##set<Bf16, Op>;                                                     \
            default: return nullptr;                                                                             \
        }                                                                                                        \
    }                                                                                                            \
    ReduceKernels::Kernel find_##set(Reduction reduction, DType dtype) {                                         \
        if (reduction == Reduction::sum) {                                                                       \
            return float_kernel_##set<Sum>(dtype);                                                               \
        }                                                                                                        \
        switch (dtype) {                                                                                         \
            case DType::i32: return reduce_##set<Plain<std::int32_t>, Max>;                                      \
            case DType::i64: return reduce_##set<Plain<std::int64_t>, Max>;                                      \
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
