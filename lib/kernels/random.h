// Counter-based random numbers: the value of an element depends only on (seed, tensor key, global index), so that every
// rank can make its own shard, and on integer arithmetic and one float multiplication, so that all machines agree.
// The distribution is the sum of four uniform 16-bit numbers, scaled: mean 0, variance 1, |value| < 3.47.
#pragma once

#include <cstdint>
#include <span>

#include "base/interval.h"
#include "tensor/view.h"

namespace shardplan::kernels {

float normal_at(std::uint64_t seed, std::uint64_t tensor_key, std::int64_t index);

/// Element i of y (f32 or bf16) = offset + scale * normal_at(row-major index of i in the global tensor).
/// y is the block of the global tensor given by one interval for each dimension of `global_shape`.
/// Throws std::invalid_argument where y has not the shape of the block or the block leaves the tensor.
void fill_block(std::uint64_t seed, std::uint64_t tensor_key, float scale, float offset,
                const tensor::Shape& global_shape, std::span<const base::Interval> block, tensor::View y);

}  // namespace shardplan::kernels
