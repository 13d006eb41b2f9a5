// The inner loops that take the time, products of small tiles, vectorised for the instruction set
// found at run time (AVX-512, AVX2 with FMA, or the compiler's baseline). A sum over k is always formed in the same
// order, whatever the number of rows and columns, so that splitting a matrix by rows or columns does not change a bit
// of the result.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardplan::kernels {

struct TileShape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t depth = 0;
};

/// Sums over k are formed piece by piece of so many and the pieces added: part of the order that never changes.
constexpr std::int64_t tile_depth = 1024;

/// A matrix in memory; `stride` = elements between rows.
template <typename T>
struct Matrix {
    T* data = nullptr;
    std::int64_t stride = 0;
};

/// Weights in blocks of 64 columns, each with its columns for all k one behind the other, each k as 64 neighbouring
/// values; of bf16 each pair (k, k + 1) as 64 neighbouring pairs, k in the lower half of a 32-bit word. So oneDNN packs
/// for AVX-512 ("BA16a64b", "BA16a64b2a"). Our own blocks are four strips of 16 columns, each arranged like that: of
/// the four streams a machine without AVX-512 can read as many as it has registers for.
constexpr std::int64_t block_columns = 64;
constexpr std::int64_t strip_columns = 16;

/// The loops for one instruction set.
struct TileFunctions {
    std::string_view name;  ///< "avx512", "avx2" or "baseline"
    /// out[i, j] += sum over k < depth of x[i, k] w[j, k]
    void (*dot_f32)(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape);
    /// The same for the bits of a bf16 w.
    void (*dot_bf16)(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out, const TileShape& shape);
    /// out[i, j] += sum over k < depth of p[i, k] v[k, j]
    void (*weighted_sum)(Matrix<const float> p, Matrix<const float> v, Matrix<float> out, const TileShape& shape);
    /// The same for the bits of a bf16 v.
    void (*weighted_bf16)(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out,
                          const TileShape& shape);
    float (*sum)(const float* values, std::int64_t count);
    /// out[i, 0..64) += sum over k < depth of x[i, k] w[k, 0..64) for one block of columns; shape.cols is not used.
    void (*block_f32)(Matrix<const float> x, const float* block, Matrix<float> out, const TileShape& shape);
    /// The same for pairs of bf16; depth is even.
    void (*block_bf16)(Matrix<const float> x, const std::uint32_t* block, Matrix<float> out, const TileShape& shape);
    /// The same for the strips of our own blocks, `w.stride` elements from strip to strip: floats, pairs of bf16, small
    /// integers.
    void (*strips_f32)(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape);
    void (*strips_bf16)(Matrix<const float> x, Matrix<const std::uint32_t> w, Matrix<float> out,
                        const TileShape& shape);
    void (*strips_s8)(Matrix<const float> x, Matrix<const std::int8_t> w, Matrix<float> out, const TileShape& shape);
    /// to[k, 0..16) = `steps` steps (pairs, or single k) of a strip.
    void (*unpack_bf16)(const std::uint32_t* strip, std::int64_t steps, float* to);
    void (*unpack_s8)(const std::int8_t* strip, std::int64_t steps, float* to);
    /// Between the bits of bf16 and float, as tensor::float_from_bf16 and tensor::bf16_from_float.
    void (*widen)(const std::uint16_t* from, std::int64_t count, float* to);
    void (*narrow)(const float* from, std::int64_t count, std::uint16_t* to);
    /// As block_bf16 with x in pairs too, depth and stride counted in pairs; nullptr without instructions for it.
    void (*block_pairs)(Matrix<const std::uint32_t> x, const std::uint32_t* block, Matrix<float> out,
                        const TileShape& shape);
};

/// Those this machine can run, best first.
const std::vector<TileFunctions>& available_tile_functions();

inline const TileFunctions& tile_functions() {
    return available_tile_functions().front();
}

inline void weighted_tile(Matrix<const float> p, Matrix<const float> v, Matrix<float> out, const TileShape& shape) {
    tile_functions().weighted_sum(p, v, out, shape);
}

inline void weighted_tile(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out,
                          const TileShape& shape) {
    tile_functions().weighted_bf16(p, v, out, shape);
}

inline void dot_tile(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape) {
    tile_functions().dot_f32(x, w, out, shape);
}

inline void dot_tile(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out, const TileShape& shape) {
    tile_functions().dot_bf16(x, w, out, shape);
}

}  // namespace shardplan::kernels
