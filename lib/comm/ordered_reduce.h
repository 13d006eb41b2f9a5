// Reductions whose result depends only on the data: blocks are combined in order 0, 1, ..., n-1 for every element.
// bf16 accumulates in f32 and rounds once at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace shardplan::comm {

enum class Reduction : std::uint8_t { sum, max };

/// f32, bf16, f64 for both; i32 and i64 for max only.
bool can_reduce(Reduction reduction, tensor::DType dtype);

/// out[i] = blocks[0][i] op blocks[1][i] op ..., where block b begins at element b * count of `blocks`.
/// The maximum of anything and NaN is NaN. `out` must not overlap `blocks`; both aligned for the dtype.
/// @pre n >= 1 and can_reduce(reduction, dtype); throws std::runtime_error otherwise.
void ordered_reduce(Reduction reduction, tensor::DType dtype, const std::byte* blocks, std::int64_t n,
                    std::int64_t count, std::byte* out);

}  // namespace shardplan::comm
