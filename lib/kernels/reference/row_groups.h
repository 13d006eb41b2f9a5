// The inner loop of products with many rows: a group of rows, packed so that the values of one k stand together,
// against one strip of 16 columns (tiles.h) for a piece of k. Group and strip fill the registers with sums; every sum
// is a chain over k in order, whatever stands beside it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/reference/tiles.h"

namespace shardplan::kernels {

/// The loops for one instruction set.
struct GroupFunctions {
    std::string_view name;
    /// Most rows of a group.
    std::int64_t rows = 1;
    /// to[k, i] = x[i, k] for shape.rows rows and shape.depth values of k.
    void (*pack)(Matrix<const float> x, float* to, const TileShape& shape);
    /// sums[i, 0..16) += sum over k < depth of x[k, i] w[k, 0..16) for shape.rows rows, at most `rows`.
    void (*multiply)(const float* x, const float* w, Matrix<float> sums, const TileShape& shape);
};

/// Those this machine can run, best first.
const std::vector<GroupFunctions>& available_group_functions();

inline const GroupFunctions& group_functions() {
    return available_group_functions().front();
}

}  // namespace shardplan::kernels
