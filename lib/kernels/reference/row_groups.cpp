#include "kernels/reference/row_groups.h"

#include <cstring>

#include "kernels/reference/instruction_set.h"
#include "kernels/reference/lanes.h"

namespace shardplan::kernels {
namespace {

template <int lanes, int rows>
SHARDPLAN_INLINE void multiply_rows(const float* x, const float* w, Matrix<float> sums, std::int64_t depth) {
    using Float = typename Lane<lanes>::Float;
    constexpr int vectors = static_cast<int>(strip_columns) / lanes;
    Float sum[rows][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
        for (int c = 0; c < vectors; ++c) {
            load<lanes>(sum[i][c], sums.data + i * sums.stride + c * lanes);
        }
    }
    for (std::int64_t k = 0; k < depth; ++k) {
        Float b[vectors];
#pragma GCC unroll 4
        for (int c = 0; c < vectors; ++c) {
            load<lanes>(b[c], w + k * strip_columns + c * lanes);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
            for (int c = 0; c < vectors; ++c) {
                sum[i][c] += x[k * rows + i] * b[c];
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
        for (int c = 0; c < vectors; ++c) {
            std::memcpy(sums.data + i * sums.stride + c * lanes, &sum[i][c], sizeof(Float));
        }
    }
}

/// The number of rows as a constant: most, most - 1, ..
template <int lanes, int most>
SHARDPLAN_INLINE void multiply_body(const float* x, const float* w, Matrix<float> sums, const TileShape& shape) {
    if constexpr (most > 0) {
        if (shape.rows == most) {
            multiply_rows<lanes, most>(x, w, sums, shape.depth);
        } else {
            multiply_body<lanes, most - 1>(x, w, sums, shape);
        }
    }
}

template <int most>
SHARDPLAN_INLINE void pack_body(Matrix<const float> x, float* to, const TileShape& shape) {
    const std::int64_t rows = shape.rows;
    if (rows == most) {  // the usual case, with constant strides
        for (std::int64_t k = 0; k < shape.depth; ++k) {
#pragma GCC unroll 16
            for (int i = 0; i < most; ++i) {
                to[k * most + i] = x.data[i * x.stride + k];
            }
        }
        return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t k = 0; k < shape.depth; ++k) {
            to[k * rows + i] = x.data[i * x.stride + k];
        }
    }
}

// With 16 columns a row takes one register of AVX-512, two of AVX2, four of SSE: 12 sums hide the latency of each.
#define SHARDPLAN_GROUP_FUNCTIONS(suffix, lanes_, rows_, attribute)                                                \
    attribute void pack_##suffix(Matrix<const float> x, float* to, const TileShape& shape) {                       \
        pack_body<rows_>(x, to, shape);                                                                            \
    }                                                                                                              \
    attribute void multiply_##suffix(const float* x, const float* w, Matrix<float> sums, const TileShape& shape) { \
        multiply_body<lanes_, rows_>(x, w, sums, shape);                                                           \
    }                                                                                                              \
    constexpr GroupFunctions functions_##suffix{                                                                   \
        .name = #suffix, .rows = rows_, .pack = pack_##suffix, .multiply = multiply_##suffix};

SHARDPLAN_GROUP_FUNCTIONS(baseline, 4, 3, )
#if defined(__x86_64__)
SHARDPLAN_GROUP_FUNCTIONS(avx2, 8, 6, SHARDPLAN_AVX2)
SHARDPLAN_GROUP_FUNCTIONS(avx512, 16, 14, SHARDPLAN_AVX512)
#endif

}  // namespace

const std::vector<GroupFunctions>& available_group_functions() {
    static const std::vector<GroupFunctions> available = runnable<GroupFunctions>(SHARDPLAN_COMPILED(functions_));
    return available;
}

}  // namespace shardplan::kernels
