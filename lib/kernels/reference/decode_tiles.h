// The inner loops of a decode's attention: a few query heads against rows of keys and values as they lie in a cache.
// Every element is read, and made float, once for up to four heads. A score is a sum in `lanes` parts, added up as a
// tree; an output is a chain over the keys in order: neither depends on the heads or keys beside it.
// `ahead` = memory that is wanted later: while the keys or values are read, as much of it is asked for, in order. It is
// never touched, and may be anything.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/reference/tiles.h"
#include "tensor/dtype.h"

namespace shardplan::kernels {

/// The loops for one instruction set. Rows of queries and of outputs are padded with zeros to a multiple of
/// `2 * lanes`; where keys and values are bf16, each 2 * lanes elements of them stand as those at even places, then
/// those at odd ones: what taking a bf16 pair apart gives.
struct DecodeFunctions {
    std::string_view name;
    std::int64_t lanes = 0;
    /// scores[h, j] = sum over i < depth of q[h, i] k[j, i] for shape.rows heads, shape.cols keys.
    void (*scores_f32)(Matrix<const float> q, Matrix<const float> k, Matrix<float> scores, const TileShape& shape,
                       const char* ahead);
    void (*scores_bf16)(Matrix<const float> q, Matrix<const std::uint16_t> k, Matrix<float> scores,
                        const TileShape& shape, const char* ahead);
    /// out[h, i] += sum over j < depth of p[h, j] v[j, i] for shape.rows heads, shape.cols components.
    void (*values_f32)(Matrix<const float> p, Matrix<const float> v, Matrix<float> out, const TileShape& shape,
                       const char* ahead);
    void (*values_bf16)(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out, const TileShape& shape,
                        const char* ahead);

    std::int64_t padded(std::int64_t width) const { return (width + 2 * lanes - 1) / (2 * lanes) * (2 * lanes); }
    /// Where element i of a row stands.
    std::int64_t place(std::int64_t i, tensor::DType dtype) const {
        return dtype == tensor::DType::f32 ? i : i - i % (2 * lanes) + i % 2 * lanes + i % (2 * lanes) / 2;
    }
};

/// Those this machine can run, best first.
const std::vector<DecodeFunctions>& available_decode_functions();

inline const DecodeFunctions& decode_functions() {
    return available_decode_functions().front();
}

inline void score_tile(const DecodeFunctions& functions, Matrix<const float> q, Matrix<const float> k,
                       Matrix<float> scores, const TileShape& shape, const char* ahead) {
    functions.scores_f32(q, k, scores, shape, ahead);
}

inline void score_tile(const DecodeFunctions& functions, Matrix<const float> q, Matrix<const std::uint16_t> k,
                       Matrix<float> scores, const TileShape& shape, const char* ahead) {
    functions.scores_bf16(q, k, scores, shape, ahead);
}

inline void value_tile(const DecodeFunctions& functions, Matrix<const float> p, Matrix<const float> v,
                       Matrix<float> out, const TileShape& shape, const char* ahead) {
    functions.values_f32(p, v, out, shape, ahead);
}

inline void value_tile(const DecodeFunctions& functions, Matrix<const float> p, Matrix<const std::uint16_t> v,
                       Matrix<float> out, const TileShape& shape, const char* ahead) {
    functions.values_bf16(p, v, out, shape, ahead);
}

}  // namespace shardplan::kernels
