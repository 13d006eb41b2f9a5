// Reductions whose result depends only on the data: sources are combined in order 0, 1, ..., n-1 for every element.
// bf16 accumulates in f32 and rounds once at the end. The instruction set in use does not change a bit of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace shardplan::comm {

enum class Reduction : std::uint8_t { sum, max };

/// f32, bf16, f64 for both; i32 and i64 for max only.
bool can_reduce(Reduction reduction, tensor::DType dtype);

/// out[i] = sources[0][i] op sources[1][i] op ... The maximum of anything and NaN is NaN. `out` may be one of the
/// sources, else it must not overlap any. All aligned for the dtype.
/// @pre at least one source and can_reduce(reduction, dtype); throws std::runtime_error otherwise.
void ordered_reduce(Reduction reduction, tensor::DType dtype, std::span<const std::byte* const> sources,
                    std::int64_t count, std::byte* out);

/// The same for n sources of which source b begins at element b * count of `blocks`; `out` overlaps none.
void ordered_reduce(Reduction reduction, tensor::DType dtype, const std::byte* blocks, std::int64_t n,
                    std::int64_t count, std::byte* out);

/// One instruction set's version of the above, for tests; nullptr for what cannot be reduced.
struct ReduceKernels {
    using Kernel = void (*)(std::span<const std::byte* const>, std::int64_t, std::byte*);
    std::string_view name;
    Kernel (*find)(Reduction, tensor::DType);
};

/// What this processor can run, the fastest first.
const std::vector<ReduceKernels>& available_reduce_kernels();

}  // namespace shardplan::comm
