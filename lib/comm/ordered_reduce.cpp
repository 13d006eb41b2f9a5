#include "comm/ordered_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace shardplan::comm {

using tensor::DType;

namespace {

/// How elements are stored and in which type they are accumulated.
template <typename T>
struct Plain {
    using Stored = T;
    using Wide = T;
    static T load(T value) { return value; }
    static T store(T value) { return value; }
};

struct Bf16 {
    using Stored = std::uint16_t;
    using Wide = float;
    static float load(std::uint16_t value) { return tensor::float_from_bf16(value); }
    static std::uint16_t store(float value) { return tensor::bf16_from_float(value); }
};

struct Sum {
    template <typename T>
    static T combine(T a, T b) {
        return a + b;
    }
};

struct Max {
    template <typename T>
    static T combine(T a, T b) {
        return b > a || b != b ? b : a;  // b != b: NaN; a NaN in `a` stays, since nothing compares greater
    }
};

// Tiles keep the accumulators of bf16 in f32 without scratch memory, and in cache.
template <typename Element, typename Op>
void reduce_tiles(const std::byte* blocks, std::int64_t n, std::int64_t count, std::byte* out) {
    using Stored = typename Element::Stored;
    constexpr std::int64_t tile = 1024;
    std::array<typename Element::Wide, tile> sums;
    const auto* source = reinterpret_cast<const Stored*>(blocks);
    auto* target = reinterpret_cast<Stored*>(out);
    for (std::int64_t begin = 0; begin < count; begin += tile) {
        const auto size = static_cast<std::size_t>(std::min(tile, count - begin));
        std::transform(source + begin, source + begin + size, sums.begin(), Element::load);
        for (std::int64_t b = 1; b < n; ++b) {
            const Stored* block = source + b * count + begin;
            for (std::size_t i = 0; i < size; ++i) {
                sums[i] = Op::combine(sums[i], Element::load(block[i]));
            }
        }
        std::transform(sums.begin(), sums.begin() + size, target + begin, Element::store);
    }
}

using Kernel = void (*)(const std::byte*, std::int64_t, std::int64_t, std::byte*);

template <typename Op>
Kernel float_kernel(DType dtype) {
    switch (dtype) {
        case DType::f32: return reduce_tiles<Plain<float>, Op>;
        case DType::f64: return reduce_tiles<Plain<double>, Op>;
        case DType::bf16: return reduce_tiles<Bf16, Op>;
        default: return nullptr;
    }
}

Kernel kernel_for(Reduction reduction, DType dtype) {
    if (reduction == Reduction::sum) {
        return float_kernel<Sum>(dtype);
    }
    switch (dtype) {
        case DType::i32: return reduce_tiles<Plain<std::int32_t>, Max>;
        case DType::i64: return reduce_tiles<Plain<std::int64_t>, Max>;
        default: return float_kernel<Max>(dtype);
    }
}

}  // namespace

bool can_reduce(Reduction reduction, DType dtype) {
    return kernel_for(reduction, dtype) != nullptr;
}

void ordered_reduce(Reduction reduction, DType dtype, const std::byte* blocks, std::int64_t n, std::int64_t count,
                    std::byte* out) {
    const Kernel kernel = kernel_for(reduction, dtype);
    if (kernel == nullptr) {
        throw std::runtime_error(fmt::format("no {} of {} elements between ranks",
                                             reduction == Reduction::sum ? "sum" : "maximum",
                                             tensor::to_string(dtype)));
    }
    kernel(blocks, n, count, out);
}

}  // namespace shardplan::comm
