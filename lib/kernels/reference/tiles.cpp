#include "kernels/reference/tiles.h"

#include <cstring>

#include "kernels/reference/blocks.h"
#include "kernels/reference/instruction_set.h"
#include "kernels/reference/lanes.h"
#include "kernels/reference/rows.h"

namespace shardplan::kernels {
namespace {

template <int lanes, int rows, int cols, typename T>
SHARDPLAN_INLINE void dot_block(Matrix<const float> x, Matrix<const T> w, Matrix<float> out, std::int64_t depth) {
    using Float = typename Lane<lanes>::Float;
    Float sum[rows][cols] = {};
    const std::int64_t whole = depth - depth % lanes;
    for (std::int64_t k = 0; k < whole; k += lanes) {
        Float b[cols];
#pragma GCC unroll 4
        for (int j = 0; j < cols; ++j) {
            load<lanes>(b[j], w.data + j * w.stride + k);
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            Float a;
            load<lanes>(a, x.data + i * x.stride + k);
#pragma GCC unroll 4
            for (int j = 0; j < cols; ++j) {
                sum[i][j] += a * b[j];
            }
        }
    }
    float total[rows][cols];
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < cols; ++j) {
            total[i][j] = sum_lanes<lanes>(sum[i][j]);
        }
    }
    for (std::int64_t k = whole; k < depth; ++k) {
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                total[i][j] += x.data[i * x.stride + k] * to_float(w.data[j * w.stride + k]);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < cols; ++j) {
            out.data[i * out.stride + j] += total[i][j];
        }
    }
}

template <int lanes, int rows, typename T>
SHARDPLAN_INLINE void dot_rows(Matrix<const float> x, Matrix<const T> w, Matrix<float> out, const TileShape& shape) {
    // 4 x 3 sums, 3 of w and 1 of x fill the 16 registers of AVX2. Few rows read 4 columns at once: one stream of
    // memory alone does not use what there is.
    constexpr int cols = rows >= 3 ? 3 : 4;
    std::int64_t j = 0;
    for (; j + cols <= shape.cols; j += cols) {
        dot_block<lanes, rows, cols, T>(x, at(w, j, 0), at(out, 0, j), shape.depth);
    }
    for (; j < shape.cols; ++j) {
        dot_block<lanes, rows, 1, T>(x, at(w, j, 0), at(out, 0, j), shape.depth);
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void dot_body(Matrix<const float> x, Matrix<const T> w, Matrix<float> out, const TileShape& shape) {
    std::int64_t i = 0;
    for (; i + 4 <= shape.rows; i += 4) {
        dot_rows<lanes, 4, T>(at(x, i, 0), w, at(out, i, 0), shape);
    }
    switch (shape.rows - i) {
        case 3: return dot_rows<lanes, 3, T>(at(x, i, 0), w, at(out, i, 0), shape);
        case 2: return dot_rows<lanes, 2, T>(at(x, i, 0), w, at(out, i, 0), shape);
        case 1: return dot_rows<lanes, 1, T>(at(x, i, 0), w, at(out, i, 0), shape);
        default: return;
    }
}

/// Columns [j, j + vectors * lanes), `rows` rows.
template <int lanes, int rows, int vectors, typename T>
SHARDPLAN_INLINE void weighted_part(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, std::int64_t depth) {
    using Float = typename Lane<lanes>::Float;
    Float sum[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            load<lanes>(sum[i][c], out.data + i * out.stride + c * lanes);
        }
    }
    for (std::int64_t k = 0; k < depth; ++k) {
        Float b[vectors];
#pragma GCC unroll 8
        for (int c = 0; c < vectors; ++c) {
            load<lanes>(b[c], v.data + k * v.stride + c * lanes);
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
            for (int c = 0; c < vectors; ++c) {
                sum[i][c] += p.data[i * p.stride + k] * b[c];
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            std::memcpy(out.data + i * out.stride + c * lanes, &sum[i][c], sizeof(Float));
        }
    }
}

template <int lanes, int rows, typename T>
SHARDPLAN_INLINE void weighted_rows(Matrix<const float> p, Matrix<const T> v, Matrix<float> out,
                                    const TileShape& shape) {
    constexpr int vectors = rows == 1 ? 8 : 2;
    std::int64_t j = 0;
    for (; j + vectors * lanes <= shape.cols; j += vectors * lanes) {
        weighted_part<lanes, rows, vectors, T>(p, at(v, 0, j), at(out, 0, j), shape.depth);
    }
    for (; j + lanes <= shape.cols; j += lanes) {
        weighted_part<lanes, rows, 1, T>(p, at(v, 0, j), at(out, 0, j), shape.depth);
    }
    for (; j < shape.cols; ++j) {
        for (int i = 0; i < rows; ++i) {
            float sum = out.data[i * out.stride + j];
            for (std::int64_t k = 0; k < shape.depth; ++k) {
                sum += p.data[i * p.stride + k] * to_float(v.data[k * v.stride + j]);
            }
            out.data[i * out.stride + j] = sum;
        }
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void weighted_body(Matrix<const float> p, Matrix<const T> v, Matrix<float> out,
                                    const TileShape& shape) {
    std::int64_t i = 0;
    for (; i + 4 <= shape.rows; i += 4) {
        weighted_rows<lanes, 4, T>(at(p, i, 0), v, at(out, i, 0), shape);
    }
    for (; i < shape.rows; ++i) {
        weighted_rows<lanes, 1, T>(at(p, i, 0), v, at(out, i, 0), shape);
    }
}

template <int lanes>
SHARDPLAN_INLINE float sum_body(const float* values, std::int64_t count) {
    using Float = typename Lane<lanes>::Float;
    constexpr int vectors = 8;
    Float sum[vectors] = {};
    std::int64_t i = 0;
    for (; i + vectors * lanes <= count; i += vectors * lanes) {
#pragma GCC unroll 8
        for (int c = 0; c < vectors; ++c) {
            Float x;
            load<lanes>(x, values + i + c * lanes);
            sum[c] += x;
        }
    }
    for (int c = 1; c < vectors; ++c) {
        sum[0] += sum[c];
    }
    float total = sum_lanes<lanes>(sum[0]);
    for (; i < count; ++i) {
        total += values[i];
    }
    return total;
}

#define SHARDPLAN_TILE_FUNCTIONS(suffix, lanes, attribute)                                                         \
    attribute void dot_f32_##suffix(Matrix<const float> x, Matrix<const float> w, Matrix<float> out,               \
                                    const TileShape& shape) {                                                      \
        dot_body<lanes, float>(x, w, out, shape);                                                                  \
    }                                                                                                              \
    attribute void dot_bf16_##suffix(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out,      \
                                     const TileShape& shape) {                                                     \
        dot_body<lanes, std::uint16_t>(x, w, out, shape);                                                          \
    }                                                                                                              \
    attribute void weighted_##suffix(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,              \
                                     const TileShape& shape) {                                                     \
        weighted_body<lanes, float>(p, v, out, shape);                                                             \
    }                                                                                                              \
    attribute void weighted_bf16_##suffix(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out, \
                                          const TileShape& shape) {                                                \
        weighted_body<lanes, std::uint16_t>(p, v, out, shape);                                                     \
    }                                                                                                              \
    attribute float sum_##suffix(const float* values, std::int64_t count) {                                        \
        return sum_body<lanes>(values, count);                                                                     \
    }                                                                                                              \
    attribute void block_f32_##suffix(Matrix<const float> x, const float* block, Matrix<float> out,                \
                                      const TileShape& shape) {                                                    \
        block_body(x, Strips<PlainBlock<lanes, float>, 64>{block}, out, shape);                                    \
    }                                                                                                              \
    attribute void block_bf16_##suffix(Matrix<const float> x, const std::uint32_t* block, Matrix<float> out,       \
                                       const TileShape& shape) {                                                   \
        block_body(x, Strips<PairBlock<lanes>, 64>{block}, out, shape);                                            \
    }                                                                                                              \
    attribute void strips_f32_##suffix(Matrix<const float> x, Matrix<const float> w, Matrix<float> out,            \
                                       const TileShape& shape) {                                                   \
        block_body(x, Strips<PlainBlock<lanes, float>, strip_columns>{w.data, w.stride}, out, shape);              \
    }                                                                                                              \
    attribute void strips_bf16_##suffix(Matrix<const float> x, Matrix<const std::uint32_t> w, Matrix<float> out,   \
                                        const TileShape& shape) {                                                  \
        block_body(x, Strips<PairBlock<lanes>, strip_columns>{w.data, w.stride}, out, shape);                      \
    }                                                                                                              \
    attribute void strips_s8_##suffix(Matrix<const float> x, Matrix<const std::int8_t> w, Matrix<float> out,       \
                                      const TileShape& shape) {                                                    \
        block_body(x, Strips<PlainBlock<lanes, std::int8_t>, strip_columns>{w.data, w.stride}, out, shape);        \
    }                                                                                                              \
    attribute void unpack_bf16_##suffix(const std::uint32_t* strip, std::int64_t steps, float* to) {               \
        unpack_body<PairBlock<lanes>>(strip, steps, to);                                                           \
    }                                                                                                              \
    attribute void unpack_s8_##suffix(const std::int8_t* strip, std::int64_t steps, float* to) {                   \
        unpack_body<PlainBlock<lanes, std::int8_t>>(strip, steps, to);                                             \
    }                                                                                                              \
    attribute void widen_##suffix(const std::uint16_t* from, std::int64_t count, float* to) {                      \
        widen_body<lanes>(from, count, to);                                                                        \
    }                                                                                                              \
    attribute void narrow_##suffix(const float* from, std::int64_t count, std::uint16_t* to) {                     \
        narrow_body<lanes>(from, count, to);                                                                       \
    }                                                                                                              \
    constexpr TileFunctions functions_##suffix{                                                                    \
        .name = #suffix,                                                                                           \
        .dot_f32 = dot_f32_##suffix,                                                                               \
        .dot_bf16 = dot_bf16_##suffix,                                                                             \
        .weighted_sum = weighted_##suffix,                                                                         \
        .weighted_bf16 = weighted_bf16_##suffix,                                                                   \
        .sum = sum_##suffix,                                                                                       \
        .block_f32 = block_f32_##suffix,                                                                           \
        .block_bf16 = block_bf16_##suffix,                                                                         \
        .strips_f32 = strips_f32_##suffix,                                                                         \
        .strips_bf16 = strips_bf16_##suffix,                                                                       \
        .strips_s8 = strips_s8_##suffix,                                                                           \
        .unpack_bf16 = unpack_bf16_##suffix,                                                                       \
        .unpack_s8 = unpack_s8_##suffix,                                                                           \
        .widen = widen_##suffix,                                                                                   \
        .narrow = narrow_##suffix,                                                                                 \
        .block_pairs = nullptr,                                                                                    \
    };

SHARDPLAN_TILE_FUNCTIONS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_TILE_FUNCTIONS(avx2, 8, SHARDPLAN_AVX2)
SHARDPLAN_TILE_FUNCTIONS(avx512, 16, SHARDPLAN_AVX512)

SHARDPLAN_AVX512 void block_pairs_avx512(Matrix<const std::uint32_t> x, const std::uint32_t* block, Matrix<float> out,
                                         const TileShape& shape) {
    block_body(x, Strips<DotBlock, 64>{block}, out, shape);
}
#endif

std::vector<TileFunctions> find_available() {
    std::vector<TileFunctions> found = runnable<TileFunctions>(SHARDPLAN_COMPILED(functions_));
#if defined(__x86_64__)
    if (found.front().name == functions_avx512.name && __builtin_cpu_supports("avx512bf16")) {
        found.front().block_pairs = block_pairs_avx512;
    }
#endif
    return found;
}

}  // namespace

const std::vector<TileFunctions>& available_tile_functions() {
    static const std::vector<TileFunctions> available = find_available();
    return available;
}

}  // namespace shardplan::kernels
