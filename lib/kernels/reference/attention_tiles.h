// The inner loops of attention that no other kernel has: the running softmax over rows of scores, and for prefill the
// products of panels of rows with packed keys and values. Vectorised for the instruction set found at run time, as the
// tiles. Every sum is a chain in order: no row depends on those beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/interval.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {

/// Where the running softmax of some rows stands, one value each.
struct RunningSums {
    float* max = nullptr;
    float* sum = nullptr;
    float* factor = nullptr;  ///< written: what the row has summed before is to be multiplied by
};

/// Rows that are multiplied at once: their sums with two vectors of columns fill the registers of AVX2.
constexpr std::int64_t panel_rows = 6;
/// Keys between two looks at the maximum of a row in a prefill.
constexpr std::int64_t panel_keys = 128;
/// Of a panel's scores: behind the last ones there is room for a vector.
constexpr std::int64_t score_stride = panel_keys + 16;

/// The loops for one instruction set. Packed keys and values are tiles of `width` neighbouring keys or components, one
/// behind the other, as float: tile [component, key] of keys, [key, component] of values. Places behind the last are
/// filled with anything finite that was read, or zero.
struct AttentionFunctions {
    std::string_view name;
    std::int64_t width = 0;
    /// shape.rows keys or values of shape.cols components.
    void (*pack_keys_f32)(Matrix<const float> k, const TileShape& shape, float* to);
    void (*pack_keys_bf16)(Matrix<const std::uint16_t> k, const TileShape& shape, float* to);
    void (*pack_values_f32)(Matrix<const float> v, const TileShape& shape, float* to);
    void (*pack_values_bf16)(Matrix<const std::uint16_t> v, const TileShape& shape, float* to);
    /// scores[r, j] = sum over i < depth of q[r, i] keys[i, j] for the rows of a panel, in tiles until shape.cols keys
    /// are done; scores is [panel_rows, score_stride].
    void (*scores)(Matrix<const float> q, const float* keys, float* scores, const TileShape& shape);
    /// out[r, i] = factor[r] out[r, i] + sum over j < depth of weights[r, j] values[j, i] for the rows of a panel,
    /// values.stride elements from tile to tile, until shape.cols components are done; weights is [panel_rows,
    /// panel_keys].
    void (*values)(const float* weights, Matrix<const float> values, Matrix<float> out, const TileShape& shape,
                   const float* factor);
    /// Of each row the scores it sees, if there are any: the maximum grows to theirs, they become exp(score - max),
    /// within 6e-7 of it and never below exp(-87), and are added to the rescaled sum. The rest of the last vector
    /// becomes 0. A row does not depend on those beside it.
    void (*soften)(Matrix<float> scores, std::span<const base::Interval> seen, const RunningSums& sums);
};

/// Those this machine can run, best first.
const std::vector<AttentionFunctions>& available_attention_functions();

inline const AttentionFunctions& attention_functions() {
    return available_attention_functions().front();
}

}  // namespace shardplan::kernels
