#include "kernels/reference/decode_tiles.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/reference/lanes.h"

namespace shardplan::kernels {
namespace {

/// What one load of stored elements gives: `parts` vectors.
template <int lanes, typename T>
struct Piece;

template <int lanes>
struct Piece<lanes, float> {
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = 1;
    SHARDPLAN_INLINE static void unpack(Float (&to)[parts], const float* from) { load<lanes>(to[0], from); }
};

template <int lanes>
struct Piece<lanes, std::uint16_t> {
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = 2;
    SHARDPLAN_INLINE static void unpack(Float (&to)[parts], const std::uint16_t* from) {
        load_pairs<lanes>(to[0], to[1], from);
    }
};

/// The sums of lanes of a and of b, halfway: those of a stand where `step` is not part of the lane's number.
template <int lanes, int step, int... lane>
SHARDPLAN_INLINE void add_halves(typename Lane<lanes>::Float& a, const typename Lane<lanes>::Float& b,
                                 std::integer_sequence<int, lane...> /*numbers*/) {
    using Int = typename Lane<lanes>::Int;
    const Int low = {((lane & step) != 0 ? lanes + lane - step : lane)...};
    const Int high = {((lane & step) != 0 ? lanes + lane : lane + step)...};
    a = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
}

/// Lane i of vectors[0] = the sum of the lanes of vectors[i], in the order of sum_lanes.
template <int lanes, int step>
SHARDPLAN_INLINE void sum_vectors(typename Lane<lanes>::Float* vectors) {
#pragma GCC unroll 8
    for (int i = 0; i < step; ++i) {
        add_halves<lanes, step>(vectors[i], vectors[i + step], std::make_integer_sequence<int, lanes>{});
    }
    if constexpr (step > 1) {
        sum_vectors<lanes, step / 2>(vectors);
    }
}

/// sum[h * keys + j] += the products of one piece of each key, from `keys` rows at `k`.
template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void add_scores(Matrix<const float> q, Matrix<const T> k, typename Lane<lanes>::Float* sum) {
    using Float = typename Lane<lanes>::Float;
    constexpr int keys = lanes / heads;
    constexpr int parts = Piece<lanes, T>::parts;
    if constexpr (heads == 4) {  // keys in registers, queries pass by
        Float w[keys][parts];
#pragma GCC unroll 4
        for (int j = 0; j < keys; ++j) {
            Piece<lanes, T>::unpack(w[j], k.data + j * k.stride);
        }
#pragma GCC unroll 2
        for (int p = 0; p < parts; ++p) {
#pragma GCC unroll 4
            for (int h = 0; h < heads; ++h) {
                Float x;
                load<lanes>(x, q.data + h * q.stride + p * lanes);
#pragma GCC unroll 4
                for (int j = 0; j < keys; ++j) {
                    sum[h * keys + j] += x * w[j][p];
                }
            }
        }
    } else {
        Float x[heads][parts];
        for (int h = 0; h < heads; ++h) {
            for (int p = 0; p < parts; ++p) {
                load<lanes>(x[h][p], q.data + h * q.stride + p * lanes);
            }
        }
#pragma GCC unroll 16
        for (int j = 0; j < keys; ++j) {
            Float w[parts];
            Piece<lanes, T>::unpack(w, k.data + j * k.stride);
#pragma GCC unroll 2
            for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 2
                for (int p = 0; p < parts; ++p) {
                    sum[h * keys + j] += x[h][p] * w[p];
                }
            }
        }
    }
}

/// The scores of `heads` heads and lanes / heads keys.
template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void score_keys(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores, std::int64_t depth) {
    using Float = typename Lane<lanes>::Float;
    constexpr int keys = lanes / heads;
    constexpr int step = Piece<lanes, T>::parts * lanes;
    Float sum[lanes] = {};
    std::int64_t i = 0;
    for (; i + step <= depth; i += step) {
        add_scores<lanes, heads, T>({q.data + i, q.stride}, {k.data + i, k.stride}, sum);
    }
    if (i < depth) {
        T rest[keys][step] = {};
        for (int j = 0; j < keys; ++j) {
            std::memcpy(rest[j], k.data + j * k.stride + i, static_cast<std::size_t>(depth - i) * sizeof(T));
        }
        add_scores<lanes, heads, T>({q.data + i, q.stride}, {rest[0], step}, sum);
    }
    sum_vectors<lanes, lanes / 2>(sum);
    for (int h = 0; h < heads; ++h) {
        std::memcpy(scores.data + h * scores.stride, reinterpret_cast<const float*>(sum) + h * keys,
                    keys * sizeof(float));
    }
}

template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void score_heads(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores,
                                  const TileShape& shape) {
    constexpr int keys = lanes / heads;
    std::int64_t j = 0;
    for (; j + keys <= shape.cols; j += keys) {
        score_keys<lanes, heads, T>(q, at(k, j, 0), at(scores, 0, j), shape.depth);
    }
    for (; j < shape.cols; ++j) {  // one key in all places: the same order of sums
        float same[lanes];
        score_keys<lanes, heads, T>(q, {k.data + j * k.stride, 0}, {same, keys}, shape.depth);
        for (int h = 0; h < heads; ++h) {
            scores.data[h * scores.stride + j] = same[h * keys];
        }
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void scores_body(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores,
                                  const TileShape& shape) {
    std::int64_t h = 0;
    for (; h + 4 <= shape.rows; h += 4) {
        score_heads<lanes, 4, T>(at(q, h, 0), k, at(scores, h, 0), shape);
    }
    if (h + 2 <= shape.rows) {
        score_heads<lanes, 2, T>(at(q, h, 0), k, at(scores, h, 0), shape);
        h += 2;
    }
    if (h < shape.rows) {
        score_heads<lanes, 1, T>(at(q, h, 0), k, at(scores, h, 0), shape);
    }
}

/// Adds the keys to `pieces` pieces of the outputs. `rest` > 0: only so many components are there to be read.
template <int lanes, int heads, int pieces, typename T>
SHARDPLAN_INLINE void add_pieces(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, std::int64_t keys,
                                 std::int64_t rest) {
    using Float = typename Lane<lanes>::Float;
    constexpr int parts = Piece<lanes, T>::parts;
    constexpr int step = parts * lanes;
    Float sum[heads][pieces][parts];
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
        std::memcpy(&sum[h], out.data + h * out.stride, sizeof(sum[h]));
    }
    T room[step] = {};
    for (std::int64_t j = 0; j < keys; ++j) {
        const T* row = v.data + j * v.stride;
        if (rest > 0) {
            std::memcpy(room, row, static_cast<std::size_t>(rest) * sizeof(T));
            row = room;
        }
        Float w[pieces][parts];
#pragma GCC unroll 8
        for (int c = 0; c < pieces; ++c) {
            Piece<lanes, T>::unpack(w[c], row + c * step);
        }
#pragma GCC unroll 4
        for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 8
            for (int c = 0; c < pieces; ++c) {
#pragma GCC unroll 2
                for (int i = 0; i < parts; ++i) {
                    sum[h][c][i] += p.data[h * p.stride + j] * w[c][i];
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
        std::memcpy(out.data + h * out.stride, &sum[h], sizeof(sum[h]));
    }
}

template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void add_heads(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, const TileShape& shape) {
    constexpr int step = Piece<lanes, T>::parts * lanes;
    constexpr int pieces = 8 / heads / Piece<lanes, T>::parts;
    std::int64_t i = 0;
    for (; i + pieces * step <= shape.cols; i += pieces * step) {
        add_pieces<lanes, heads, pieces, T>(p, at(v, 0, i), at(out, 0, i), shape.depth, 0);
    }
    for (; i < shape.cols; i += step) {
        const std::int64_t left = shape.cols - i;
        add_pieces<lanes, heads, 1, T>(p, at(v, 0, i), at(out, 0, i), shape.depth, left < step ? left : 0);
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void values_body(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, const TileShape& shape) {
    std::int64_t h = 0;
    for (; h + 4 <= shape.rows; h += 4) {
        add_heads<lanes, 4, T>(at(p, h, 0), v, at(out, h, 0), shape);
    }
    if (h + 2 <= shape.rows) {
        add_heads<lanes, 2, T>(at(p, h, 0), v, at(out, h, 0), shape);
        h += 2;
    }
    if (h < shape.rows) {
        add_heads<lanes, 1, T>(at(p, h, 0), v, at(out, h, 0), shape);
    }
}

#define SHARDPLAN_DECODE_FUNCTIONS(suffix, lanes_, attribute)                                                       \
    attribute void scores_f32_##suffix(Matrix<const float> q, Matrix<const float> k, Matrix<float> scores,          \
                                       const TileShape& shape) {                                                    \
        scores_body<lanes_, float>(q, k, scores, shape);                                                            \
    }                                                                                                               \
    attribute void scores_bf16_##suffix(Matrix<const float> q, Matrix<const std::uint16_t> k, Matrix<float> scores, \
                                        const TileShape& shape) {                                                   \
        scores_body<lanes_, std::uint16_t>(q, k, scores, shape);                                                    \
    }                                                                                                               \
    attribute void values_f32_##suffix(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,             \
                                       const TileShape& shape) {                                                    \
        values_body<lanes_, float>(p, v, out, shape);                                                               \
    }                                                                                                               \
    attribute void values_bf16_##suffix(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out,    \
                                        const TileShape& shape) {                                                   \
        values_body<lanes_, std::uint16_t>(p, v, out, shape);                                                       \
    }                                                                                                               \
    constexpr DecodeFunctions functions_##suffix{.name = #suffix,                                                   \
                                                 .lanes = lanes_,                                                   \
                                                 .scores_f32 = scores_f32_##suffix,                                 \
                                                 .scores_bf16 = scores_bf16_##suffix,                               \
                                                 .values_f32 = values_f32_##suffix,                                 \
                                                 .values_bf16 = values_bf16_##suffix};

SHARDPLAN_DECODE_FUNCTIONS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_DECODE_FUNCTIONS(avx2, 8, __attribute__((target("avx2,fma"))))
SHARDPLAN_DECODE_FUNCTIONS(avx512, 16, __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma"))))
#endif

/// The instruction sets of the tiles.
std::vector<DecodeFunctions> find_available() {
    std::vector<DecodeFunctions> found;
    for (const TileFunctions& tiles : available_tile_functions()) {
#if defined(__x86_64__)
        for (const DecodeFunctions& functions : {functions_avx512, functions_avx2}) {
            if (functions.name == tiles.name) {
                found.push_back(functions);
            }
        }
#endif
        if (functions_baseline.name == tiles.name) {
            found.push_back(functions_baseline);
        }
    }
    return found;
}

}  // namespace

const std::vector<DecodeFunctions>& available_decode_functions() {
    static const std::vector<DecodeFunctions> available = find_available();
    return available;
}

}  // namespace shardplan::kernels
