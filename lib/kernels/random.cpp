#include "kernels/random.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "kernels/checks.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;
constexpr int sum_mean = 2 * 65535;  // of four uniform numbers 0 .. 65535
// 1 / sqrt(4 (65536^2 - 1) / 12)
constexpr float inverse_deviation = 1.0F / 37837.2272F;

std::uint64_t stream_of(std::uint64_t seed, std::uint64_t tensor_key) {
    return base::splitmix64(base::splitmix64(seed) ^ tensor_key);
}

float normal_of(std::uint64_t stream, std::int64_t index) {
    const std::uint64_t bits = base::splitmix64(stream + static_cast<std::uint64_t>(index) * golden_gamma);
    const auto sum = (bits & 0xffffU) + (bits >> 16 & 0xffffU) + (bits >> 32 & 0xffffU) + (bits >> 48);
    return static_cast<float>(static_cast<int>(sum) - sum_mean) * inverse_deviation;
}

void check_block(const tensor::Shape& global, std::span<const base::Interval> block, const tensor::View& y) {
    check_float("fill_block", "y", y.dtype);
    check_length("fill_block", "block", block.size(), static_cast<std::int64_t>(global.size()));
    tensor::Shape local;
    for (std::size_t i = 0; i < global.size(); ++i) {
        if (block[i].begin < 0 || block[i].end > global[i] || block[i].size() < 0) {
            reject("fill_block", fmt::format("block [{}, {}) leaves dimension {} of the tensor {}", block[i].begin,
                                             block[i].end, i, tensor::to_string(global)));
        }
        local.push_back(block[i].size());
    }
    check_shape("fill_block", "y", y.shape, local);
}

/// Global index of the first element of local row `row` (all dimensions but the last flattened).
std::int64_t row_origin(const tensor::Shape& global, std::span<const base::Interval> block, std::int64_t row) {
    std::int64_t origin = block.back().begin;
    std::int64_t stride = global.back();
    for (std::size_t i = global.size() - 1; i-- > 0;) {
        origin += (block[i].begin + row % block[i].size()) * stride;
        row /= block[i].size();
        stride *= global[i];
    }
    return origin;
}

}  // namespace

float normal_at(std::uint64_t seed, std::uint64_t tensor_key, std::int64_t index) {
    return normal_of(stream_of(seed, tensor_key), index);
}

void fill_block(std::uint64_t seed, std::uint64_t tensor_key, float scale, float offset,
                const tensor::Shape& global_shape, std::span<const base::Interval> block, tensor::View y) {
    check_block(global_shape, block, y);
    const std::uint64_t stream = stream_of(seed, tensor_key);
    const bool scalar = global_shape.empty();
    const std::int64_t width = scalar ? 1 : y.shape.back();
    const std::int64_t rows = scalar ? 1 : leading_count(y.shape);
    // A row may be the whole tensor (a vector), so the work is cut into chunks of rows.
    constexpr std::int64_t chunk = 4096;
    const std::int64_t chunks = (width + chunk - 1) / chunk;
#pragma omp parallel for collapse(2) schedule(static) if (worth_threads(rows * width))
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < chunks; ++c) {
            const std::int64_t origin = scalar ? 0 : row_origin(global_shape, block, row);
            const std::int64_t end = std::min(width, (c + 1) * chunk);
            for (std::int64_t i = c * chunk; i < end; ++i) {
                const float value = offset + scale * normal_of(stream, origin + i);
                if (y.dtype == tensor::DType::f32) {
                    y.as<float>()[row * width + i] = value;
                } else {
                    y.as<std::uint16_t>()[row * width + i] = tensor::bf16_from_float(value);
                }
            }
        }
    }
}

}  // namespace shardplan::kernels
