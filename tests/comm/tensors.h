// Small tensors whose elements are functions of a multi-index, written with the most obvious loops.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "tensor/view.h"

namespace shardplan::test {

struct Tensor {
    tensor::DType dtype = tensor::DType::f32;
    tensor::Shape shape;
    std::vector<std::byte> bytes;

    Tensor(tensor::DType type, tensor::Shape sizes)
        : dtype(type), shape(std::move(sizes)), bytes(static_cast<std::size_t>(tensor::byte_count(shape, dtype))) {}
    tensor::View view() { return {bytes.data(), dtype, shape}; }
    friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// The bits of one element in its low bytes.
using Bits = std::uint64_t;
using IndexFunction = std::function<Bits(const tensor::Shape& index)>;

/// Values from a hash: any bits for integers; for floats full fractions and exponents from -6 to 9, so that the order
/// of a sum matters.
inline Bits bits_of(tensor::DType dtype, std::uint64_t hash) {
    const double fraction = 1.0 + std::ldexp(static_cast<double>(hash >> 12), -52);
    const double value = std::ldexp((hash & 1U) != 0 ? -fraction : fraction, static_cast<int>(hash >> 1 & 15U) - 6);
    switch (dtype) {
        case tensor::DType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
        case tensor::DType::bf16: return tensor::bf16_from_float(static_cast<float>(value));
        case tensor::DType::f64: return std::bit_cast<std::uint64_t>(value);
        default: return hash;
    }
}

inline std::uint64_t hash_of(std::uint64_t salt, const tensor::Shape& index) {
    std::uint64_t state = base::splitmix64(salt);
    for (const std::int64_t i : index) {
        state = base::splitmix64(state ^ static_cast<std::uint64_t>(i));
    }
    return state;
}

inline Tensor generate(tensor::DType dtype, const tensor::Shape& shape, const IndexFunction& function) {
    Tensor result(dtype, shape);
    const auto element = static_cast<std::size_t>(tensor::size_of(dtype));
    tensor::Shape index(shape.size(), 0);
    for (std::size_t offset = 0; offset < result.bytes.size(); offset += element) {
        const Bits bits = function(index);
        std::memcpy(result.bytes.data() + offset, &bits, element);  // little-endian
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d]) {
                break;
            }
            index[d] = 0;
        }
    }
    return result;
}

/// `index` with `amount` added along `dim`.
inline tensor::Shape shifted(tensor::Shape index, int dim, std::int64_t amount) {
    index[static_cast<std::size_t>(dim)] += amount;
    return index;
}

/// `shape` with dimension dim * n.
inline tensor::Shape grown(tensor::Shape shape, int dim, std::int64_t n) {
    shape[static_cast<std::size_t>(dim)] *= n;
    return shape;
}

/// A repeatable source of small numbers, the same on all ranks.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    /// 0 .. bound - 1
    std::int64_t below(std::int64_t bound) {
        state_ = base::splitmix64(state_);
        return static_cast<std::int64_t>((state_ >> 16) % static_cast<std::uint64_t>(bound));
    }

private:
    std::uint64_t state_;
};

}  // namespace shardplan::test
