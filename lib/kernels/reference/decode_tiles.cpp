#include "kernels/reference/decode_tiles.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/reference/instruction_set.h"
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
    SHARDPLAN_INLINE static void unpack(Float* to, const float* from) { get<lanes>(to[0], from); }
};

template <int lanes>
struct Piece<lanes, std::uint16_t> {
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = 2;
    SHARDPLAN_INLINE static void unpack(Float* to, const std::uint16_t* from) { get_pairs<lanes>(to[0], to[1], from); }
};

/// Neighbouring lanes of a and of b, added, within each four lanes: those of a, then those of b.
template <int lanes, int... lane>
SHARDPLAN_INLINE void add_neighbours(typename Lane<lanes>::Float& a, const typename Lane<lanes>::Float& b,
                                     std::integer_sequence<int, lane...> /*numbers*/) {
    using Int = typename Lane<lanes>::Int;
    const Int even = {((lane & 2) * lanes / 2 + (lane & ~3) + (lane & 1) * 2)...};
    const Int odd = even + 1;
    a = __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
}

/// The sums of lanes of a and of b, halfway: those of a stand where `step` is not part of the lane's number.
template <int lanes, int step, int... lane>
SHARDPLAN_INLINE void add_halves(typename Lane<lanes>::Float& a, const typename Lane<lanes>::Float& b,
                                 std::integer_sequence<int, lane...> /*numbers*/) {
    using Int = typename Lane<lanes>::Int;
    const Int low = {((lane & step) != 0 ? lanes + lane - step : lane)...};
    const Int high = {((lane & step) != 0 ? lanes + lane : lane + step)...};
    a = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
}

/// vectors[0, 4, 8...] hold four sums in each four lanes, which are still to be added.
template <int lanes, int step>
SHARDPLAN_INLINE void sum_fours(typename Lane<lanes>::Float* vectors) {
    if constexpr (step >= 4) {
#pragma GCC unroll 4
        for (int i = 0; i < step; i += 4) {
            add_halves<lanes, step>(vectors[i], vectors[i + step], std::make_integer_sequence<int, lanes>{});
        }
        sum_fours<lanes, step / 2>(vectors);
    }
}

/// Lane i of vectors[0] = the sum of the lanes of vectors[i]: four lanes at a time as a tree, then their sums.
template <int lanes>
SHARDPLAN_INLINE void sum_vectors(typename Lane<lanes>::Float* vectors) {
    constexpr auto numbers = std::make_integer_sequence<int, lanes>{};
#pragma GCC unroll 4
    for (int i = 0; i < lanes; i += 4) {
        add_neighbours<lanes>(vectors[i], vectors[i + 1], numbers);
        add_neighbours<lanes>(vectors[i + 2], vectors[i + 3], numbers);
        add_neighbours<lanes>(vectors[i], vectors[i + 2], numbers);
    }
    sum_fours<lanes, lanes / 2>(vectors);
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
                get<lanes>(x, q.data + h * q.stride + p * lanes);
                keep(x);
#pragma GCC unroll 4
                for (int j = 0; j < keys; ++j) {
                    sum[h * keys + j] += x * w[j][p];
                }
            }
        }
    } else {
        Float x[heads][parts];
#pragma GCC unroll 2
        for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 2
            for (int p = 0; p < parts; ++p) {
                get<lanes>(x[h][p], q.data + h * q.stride + p * lanes);
                keep(x[h][p]);
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

/// Stores the `keys` scores of each head, which stand one behind the other.
template <int lanes, int heads>
SHARDPLAN_INLINE void store_scores(const typename Lane<lanes>::Float& sums, Matrix<float> scores) {
    constexpr int keys = lanes / heads;
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
        float* to = scores.data + h * scores.stride;
        if constexpr (keys == lanes) {
            put<lanes>(to, sums);
        } else if constexpr (keys == 2) {
            *reinterpret_cast<typename Loose<lanes>::Two*>(to) = reinterpret_cast<typename Loose<lanes>::Twos>(sums)[h];
        } else {
#pragma GCC unroll 8
            for (int j = 0; j < keys; ++j) {
                to[j] = sums[h * keys + j];
            }
        }
    }
}

/// Asks for `bytes` of memory, or for the line that begins in it.
template <int bytes>
SHARDPLAN_INLINE void fetch(const char* from) {
#pragma GCC unroll 16
    for (int i = 0; i < bytes; i += 64) {
        __builtin_prefetch(from + i);
    }
}

/// The scores of `heads` heads and lanes / heads keys. Asks for as much memory as it reads.
template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void score_keys(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores, std::int64_t depth,
                                 const char* ahead) {
    using Float = typename Lane<lanes>::Float;
    constexpr int keys = lanes / heads;
    constexpr int step = Piece<lanes, T>::parts * lanes;
    constexpr int bytes = keys * step * static_cast<int>(sizeof(T));
    Float sum[lanes] = {};
    std::int64_t i = 0;
#pragma GCC unroll 2
    for (; i + step <= depth; i += step) {
        fetch<bytes>(ahead);
        ahead += bytes;
        add_scores<lanes, heads, T>({q.data + i, q.stride}, {k.data + i, k.stride}, sum);
    }
    if (i < depth) {
        T rest[keys][step] = {};
        for (int j = 0; j < keys; ++j) {
            std::memcpy(rest[j], k.data + j * k.stride + i, static_cast<std::size_t>(depth - i) * sizeof(T));
        }
        fetch<bytes>(ahead);
        add_scores<lanes, heads, T>({q.data + i, q.stride}, {rest[0], step}, sum);
    }
    sum_vectors<lanes>(sum);
    store_scores<lanes, heads>(sum[0], scores);
}

template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void score_heads(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores,
                                  const TileShape& shape, const char* ahead) {
    constexpr int keys = lanes / heads;
    const std::int64_t row_bytes = shape.depth * static_cast<std::int64_t>(sizeof(T));
    std::int64_t j = 0;
    for (; j + keys <= shape.cols; j += keys) {
        score_keys<lanes, heads, T>(q, at(k, j, 0), at(scores, 0, j), shape.depth, ahead + j * row_bytes);
    }
    for (; j < shape.cols; ++j) {  // one key in all places: the same order of sums
        float same[lanes];
        score_keys<lanes, heads, T>(q, {k.data + j * k.stride, 0}, {same, keys}, shape.depth, ahead);
        for (int h = 0; h < heads; ++h) {
            scores.data[h * scores.stride + j] = same[h * keys];
        }
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void scores_body(Matrix<const float> q, Matrix<const T> k, Matrix<float> scores,
                                  const TileShape& shape, const char* ahead) {
    std::int64_t h = 0;
    for (; h + 4 <= shape.rows; h += 4) {
        score_heads<lanes, 4, T>(at(q, h, 0), k, at(scores, h, 0), shape, ahead);
    }
    if (h + 2 <= shape.rows) {
        score_heads<lanes, 2, T>(at(q, h, 0), k, at(scores, h, 0), shape, ahead);
        h += 2;
    }
    if (h < shape.rows) {
        score_heads<lanes, 1, T>(at(q, h, 0), k, at(scores, h, 0), shape, ahead);
    }
}

/// Adds the keys to `pieces` pieces of the outputs. `rest` > 0: only so many components are there to be read.
template <int lanes, int heads, int pieces, bool whole, typename T>
SHARDPLAN_INLINE void add_pieces(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, std::int64_t keys,
                                 std::int64_t rest, const char* ahead) {
    using Float = typename Lane<lanes>::Float;
    constexpr int parts = Piece<lanes, T>::parts;
    constexpr int vectors = pieces * parts;
    constexpr int bytes = vectors * lanes * static_cast<int>(sizeof(T));
    Float sum[heads][vectors];
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            get<lanes>(sum[h][c], out.data + h * out.stride + c * lanes);
        }
    }
    const float* weights[heads];
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
        weights[h] = p.data + h * p.stride;
    }
    T room[parts * lanes] = {};
    const T* row = v.data;
    for (std::int64_t j = 0; j < keys; ++j) {
        Float w[vectors];
        if constexpr (whole) {
#pragma GCC unroll 16
            for (int c = 0; c < pieces; ++c) {
                Piece<lanes, T>::unpack(w + c * parts, row + c * parts * lanes);
            }
            fetch<bytes>(ahead);
            ahead += bytes;
        } else {
            std::memcpy(room, row, static_cast<std::size_t>(rest) * sizeof(T));
            Piece<lanes, T>::unpack(w, room);
        }
        row += v.stride;
#pragma GCC unroll 4
        for (int h = 0; h < heads; ++h) {
            const float weight = weights[h][j];
#pragma GCC unroll 16
            for (int c = 0; c < vectors; ++c) {
                sum[h][c] += weight * w[c];
            }
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            put<lanes>(out.data + h * out.stride + c * lanes, sum[h][c]);
        }
    }
}

template <int lanes, int heads, typename T>
SHARDPLAN_INLINE void add_heads(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, const TileShape& shape,
                                const char* ahead) {
    constexpr int step = Piece<lanes, T>::parts * lanes;
    constexpr int pieces = 8 / heads / Piece<lanes, T>::parts;
    const std::int64_t part = shape.depth * static_cast<std::int64_t>(sizeof(T));  // of what is read, per component
    std::int64_t i = 0;
    for (; i + pieces * step <= shape.cols; i += pieces * step) {
        add_pieces<lanes, heads, pieces, true, T>(p, at(v, 0, i), at(out, 0, i), shape.depth, 0, ahead + i * part);
    }
    for (; i + step <= shape.cols; i += step) {
        add_pieces<lanes, heads, 1, true, T>(p, at(v, 0, i), at(out, 0, i), shape.depth, 0, ahead + i * part);
    }
    if (i < shape.cols) {
        add_pieces<lanes, heads, 1, false, T>(p, at(v, 0, i), at(out, 0, i), shape.depth, shape.cols - i, ahead);
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void values_body(Matrix<const float> p, Matrix<const T> v, Matrix<float> out, const TileShape& shape,
                                  const char* ahead) {
    std::int64_t h = 0;
    for (; h + 4 <= shape.rows; h += 4) {
        add_heads<lanes, 4, T>(at(p, h, 0), v, at(out, h, 0), shape, ahead);
    }
    if (h + 2 <= shape.rows) {
        add_heads<lanes, 2, T>(at(p, h, 0), v, at(out, h, 0), shape, ahead);
        h += 2;
    }
    if (h < shape.rows) {
        add_heads<lanes, 1, T>(at(p, h, 0), v, at(out, h, 0), shape, ahead);
    }
}

#define SHARDPLAN_DECODE_FUNCTIONS(suffix, lanes_, attribute)                                                       \
    attribute void scores_f32_##suffix(Matrix<const float> q, Matrix<const float> k, Matrix<float> scores,          \
                                       const TileShape& shape, const char* ahead) {                                 \
        scores_body<lanes_, float>(q, k, scores, shape, ahead);                                                     \
    }                                                                                                               \
    attribute void scores_bf16_##suffix(Matrix<const float> q, Matrix<const std::uint16_t> k, Matrix<float> scores, \
                                        const TileShape& shape, const char* ahead) {                                \
        scores_body<lanes_, std::uint16_t>(q, k, scores, shape, ahead);                                             \
    }                                                                                                               \
    attribute void values_f32_##suffix(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,             \
                                       const TileShape& shape, const char* ahead) {                                 \
        values_body<lanes_, float>(p, v, out, shape, ahead);                                                        \
    }                                                                                                               \
    attribute void values_bf16_##suffix(Matrix<const float> p, Matrix<const std::uint16_t> v, Matrix<float> out,    \
                                        const TileShape& shape, const char* ahead) {                                \
        values_body<lanes_, std::uint16_t>(p, v, out, shape, ahead);                                                \
    }                                                                                                               \
    constexpr DecodeFunctions functions_##suffix{.name = #suffix,                                                   \
                                                 .lanes = lanes_,                                                   \
                                                 .scores_f32 = scores_f32_##suffix,                                 \
                                                 .scores_bf16 = scores_bf16_##suffix,                               \
                                                 .values_f32 = values_f32_##suffix,                                 \
                                                 .values_bf16 = values_bf16_##suffix};

SHARDPLAN_DECODE_FUNCTIONS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_DECODE_FUNCTIONS(avx2, 8, SHARDPLAN_AVX2)
SHARDPLAN_DECODE_FUNCTIONS(avx512, 16, SHARDPLAN_AVX512)
#endif

}  // namespace

const std::vector<DecodeFunctions>& available_decode_functions() {
    static const std::vector<DecodeFunctions> available = runnable<DecodeFunctions>(SHARDPLAN_COMPILED(functions_));
    return available;
}

}  // namespace shardplan::kernels
