// The inner loops that take the time, products of small tiles and exponentials, vectorised for the instruction set
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

/// A matrix in memory; `stride` = elements between rows.
template <typename T>
struct Matrix {
    T* data = nullptr;
    std::int64_t stride = 0;
};

/// The loops for one instruction set.
struct TileFunctions {
    std::string_view name;  ///< "avx512", "avx2" or "baseline"
    /// out[i, j] += sum over k < depth of x[i, k] w[j, k]
    void (*dot_f32)(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape);
    /// The same for the bits of a bf16 w.
    void (*dot_bf16)(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out, const TileShape& shape);
    /// out[i, j] += sum over k < depth of p[i, k] v[k, j]
    void (*weighted_sum)(Matrix<const float> p, Matrix<const float> v, Matrix<float> out, const TileShape& shape);
    /// values[i] = exp(values[i] - shift) for results <= 1, within 2 ulp (0 where below 1e-37); returns their sum.
    float (*exp_sum)(float* values, std::int64_t count, float shift);
};

/// Those this machine can run, best first.
const std::vector<TileFunctions>& available_tile_functions();

inline const TileFunctions& tile_functions() {
    return available_tile_functions().front();
}

inline void dot_tile(Matrix<const float> x, Matrix<const float> w, Matrix<float> out, const TileShape& shape) {
    tile_functions().dot_f32(x, w, out, shape);
}

inline void dot_tile(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out, const TileShape& shape) {
    tile_functions().dot_bf16(x, w, out, shape);
}

}  // namespace shardplan::kernels
