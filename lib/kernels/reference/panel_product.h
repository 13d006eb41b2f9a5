// Products with weights [K, N] as they lie in memory: panels of them become blocks of floats (tiles.h) just before
// their rows pass by, where dot products would first have to turn the whole weight. For bf16 where oneDNN cannot
// multiply it, and for the groups of experts, each with another number of rows. A row's result depends neither on the
// number of rows nor on how the columns are cut.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/reference/matmul.h"

namespace shardplan::kernels {

/// Rows [begin, end) of x and y, and the weight they meet.
struct PanelGroup {
    const std::byte* w = nullptr;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// y[r, n] = x[r, k] w[k, n] for the rows of each group. x and the weights are f32 or bf16, both the same.
void multiply_panels(const ConstView& x, std::span<const PanelGroup> groups, WeightSize size, const View& y);

}  // namespace shardplan::kernels
