// The two inner loops that take the time: products of small tiles, vectorised for the instruction set found at run time
// (AVX-512, AVX2 with FMA, or the compiler's baseline). A sum over k is always formed in the same order, whatever the
// number of rows and columns, so that splitting a matrix by rows or columns does not change a bit of the result.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan::kernels {

struct TileShape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t depth = 0;
};

/// A matrix in memory; `stride` = elements between rows.
template <typename T>
struct Matrix {
    T* data = nullptr;
    std::int64_t stride = 0;
};

/// out[i, j] += sum over k < depth of x[i, k] w[j, k]. The bf16 version takes the bits of w.
void dot_tile(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape);
void dot_tile(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out, const TileShape& shape);

/// out[i, j] += sum over k < depth of p[i, k] v[k, j].
void weighted_sum_tile(Matrix<const float> p, Matrix<const float> v, Matrix<float> out, const TileShape& shape);

/// "avx512", "avx2" or "baseline".
std::string_view tile_instruction_set();

}  // namespace shardplan::kernels
