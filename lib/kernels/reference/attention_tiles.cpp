#include "kernels/reference/attention_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/reference/instruction_set.h"
#include "kernels/reference/lanes.h"

namespace shardplan::kernels {
namespace {

template <int lanes>
SHARDPLAN_INLINE float max_lanes(const typename Lane<lanes>::Float& vector) {
    if constexpr (lanes > 4) {
        using Half = typename Lane<lanes / 2>::Float;
        Half low;
        Half high;
        std::memcpy(&low, &vector, sizeof(low));
        std::memcpy(&high, reinterpret_cast<const char*>(&vector) + sizeof(low), sizeof(high));
        const Half most = low < high ? high : low;
        return max_lanes<lanes / 2>(most);
    } else {
        using Int = typename Lane<4>::Int;
        const auto turned = __builtin_shuffle(vector, Int{2, 3, 0, 1});
        const auto pairs = vector < turned ? turned : vector;
        return pairs[0] < pairs[1] ? pairs[1] : pairs[0];
    }
}

/// x = the larger of x and y, of which none is NaN.
template <int lanes>
SHARDPLAN_INLINE void take_larger(typename Lane<lanes>::Float& x, const typename Lane<lanes>::Float& y) {
#if defined(__x86_64__)
    if constexpr (lanes >= 8) {  // compilers compare, then blend
        asm("vmaxps %1, %0, %0" : "+v"(x) : "v"(y));
        return;
    }
#endif
    x = x < y ? y : x;
}

/// Which lanes are among the first `count`.
template <int lanes, int... lane>
SHARDPLAN_INLINE void first_lanes(typename Lane<lanes>::Int& which, std::int64_t count,
                                  std::integer_sequence<int, lane...> /*numbers*/) {
    using Int = typename Lane<lanes>::Int;
    which = Int{lane...} < Int{} + static_cast<std::int32_t>(count);
}

template <int lanes>
SHARDPLAN_INLINE float max_of(const float* values, std::int64_t count, float max) {
    using Float = typename Lane<lanes>::Float;
    Float most = Float{} + max;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        Float x;
        get<lanes>(x, values + i);
        take_larger<lanes>(most, x);
    }
    if (i < count) {
        typename Lane<lanes>::Int there;
        first_lanes<lanes>(there, count - i, std::make_integer_sequence<int, lanes>{});
        Float x;
        get<lanes>(x, values + i);
        x = there ? x : most;
        take_larger<lanes>(most, x);
    }
    return max_lanes<lanes>(most);
}

/// exp(x) for x <= 0, not below exp(-87): 2^n exp(r) with |r| <= ln(2) / 2, and the Taylor polynomial of degree 6
/// (remainder 1.2e-7), in an order that waits little. The lowest bits of `shifted` are n and the bias of an exponent.
template <int lanes>
SHARDPLAN_INLINE void exp_weight(typename Lane<lanes>::Float& x) {
    using Float = typename Lane<lanes>::Float;
    using Int = typename Lane<lanes>::Int;
    take_larger<lanes>(x, Float{} - 87.0F);
    const Float shifter = Float{} + 12583039.0F;  // 1.5 * 2^23 + 127
    const Float shifted = x * 1.44269504088896341F + shifter;
    const Float n = shifted - shifter;
    // ln(2) in two parts, the first short enough for an exact product: compilers need not fuse what they may.
    const Float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    const Float r2 = r * r;
    const Float low = (r + 1.0F) + (r * (1.0F / 6) + 0.5F) * r2;
    const Float high = (r * (1.0F / 120) + 1.0F / 24) + r2 * (1.0F / 720);
    x = (low + high * (r2 * r2)) * reinterpret_cast<Float>(reinterpret_cast<Int>(shifted) << 23);
}

/// values = exp(values - shift), and 0 for the rest of the last vector; returns their sum.
template <int lanes>
SHARDPLAN_INLINE float exp_values(float* values, std::int64_t count, float shift) {
    using Float = typename Lane<lanes>::Float;
    Float total = {};
    std::int64_t i = 0;
#pragma GCC unroll 2
    for (; i + lanes <= count; i += lanes) {
        Float x;
        get<lanes>(x, values + i);
        x -= shift;
        exp_weight<lanes>(x);
        total += x;
        put<lanes>(values + i, x);
    }
    if (i < count) {
        typename Lane<lanes>::Int there;
        first_lanes<lanes>(there, count - i, std::make_integer_sequence<int, lanes>{});
        Float x;
        get<lanes>(x, values + i);
        x = there ? x - shift : Float{};
        exp_weight<lanes>(x);
        x = there ? x : Float{};
        total += x;
        put<lanes>(values + i, x);
    }
    return sum_lanes<lanes>(total);
}

/// The maxima first, so that no row waits for its own.
template <int lanes>
SHARDPLAN_INLINE void soften_body(Matrix<float> scores, std::span<const base::Interval> seen, const RunningSums& sums) {
    const auto rows = static_cast<std::int64_t>(seen.size());
    for (std::int64_t r = 0; r < rows; ++r) {
        const base::Interval& keys = seen[static_cast<std::size_t>(r)];
        const float max =
            max_of<lanes>(scores.data + r * scores.stride + keys.begin, keys.end - keys.begin, sums.max[r]);
        sums.factor[r] = max == sums.max[r] ? 0.0F : sums.max[r] - max;  // both may be -inf
        sums.max[r] = max;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        const base::Interval& keys = seen[static_cast<std::size_t>(r)];
        const bool grown = sums.factor[r] != 0.0F;
        sums.factor[r] = grown ? std::exp(sums.factor[r]) : 1.0F;  // 0 for the first keys: the maximum was -inf
        sums.sum[r] *= sums.factor[r];
        if (keys.begin < keys.end) {
            sums.sum[r] +=
                exp_values<lanes>(scores.data + r * scores.stride + keys.begin, keys.end - keys.begin, sums.max[r]);
        }
    }
}

/// Exchanges what stands where `step` is part of the lane's number in a with what stands where it is not in b.
template <int lanes, int step, int... lane>
SHARDPLAN_INLINE void swap_halves(typename Lane<lanes>::Float& a, typename Lane<lanes>::Float& b,
                                  std::integer_sequence<int, lane...> /*numbers*/) {
    using Int = typename Lane<lanes>::Int;
    const Int low = {((lane & step) != 0 ? lanes + lane - step : lane)...};
    const Int high = {((lane & step) != 0 ? lanes + lane : lane + step)...};
    const auto first = __builtin_shuffle(a, b, low);
    b = __builtin_shuffle(a, b, high);
    a = first;
}

/// Lane i of vector j becomes lane j of vector i.
template <int lanes, int step>
SHARDPLAN_INLINE void transpose(typename Lane<lanes>::Float* vectors) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) {
        if ((i & step) == 0) {
            swap_halves<lanes, step>(vectors[i], vectors[i + step], std::make_integer_sequence<int, lanes>{});
        }
    }
    if constexpr (step > 1) {
        transpose<lanes, step / 2>(vectors);
    }
}

/// Components [i, i + step) of `lanes` keys; behind the last one it stands again.
template <int lanes, typename T>
SHARDPLAN_INLINE void pack_part(Matrix<const T> k, std::int64_t last, std::int64_t i, float* to) {
    using Float = typename Lane<lanes>::Float;
    constexpr int width = 2 * lanes;
    if constexpr (sizeof(T) == sizeof(float)) {
        Float part[lanes];
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) {
            get<lanes>(part[j], k.data + std::min<std::int64_t>(j, last) * k.stride + i);
        }
        transpose<lanes, lanes / 2>(part);
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) {
            put<lanes>(to + j * width, part[j]);
        }
    } else {
        Float even[lanes];
        Float odd[lanes];
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) {
            get_pairs<lanes>(even[j], odd[j], k.data + std::min<std::int64_t>(j, last) * k.stride + i);
        }
        transpose<lanes, lanes / 2>(even);
        transpose<lanes, lanes / 2>(odd);
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) {
            put<lanes>(to + 2 * j * width, even[j]);
            put<lanes>(to + (2 * j + 1) * width, odd[j]);
        }
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void pack_keys_body(Matrix<const T> k, const TileShape& shape, float* to) {
    constexpr int step = sizeof(T) == sizeof(float) ? lanes : 2 * lanes;
    constexpr int width = 2 * lanes;
    for (std::int64_t first = 0; first < shape.rows; first += lanes) {
        const std::int64_t last = shape.rows - 1 - first;
        const Matrix<const T> keys = at(k, first, 0);
        float* tile = to + first / width * width * shape.cols + first % width;
        std::int64_t i = 0;
        for (; i + step <= shape.cols; i += step) {
            pack_part<lanes, T>(keys, last, i, tile + i * width);
        }
        for (; i < shape.cols; ++i) {
            for (int j = 0; j < lanes; ++j) {
                tile[i * width + j] = to_float(keys.data[std::min<std::int64_t>(j, last) * k.stride + i]);
            }
        }
    }
}

template <int lanes, typename T>
SHARDPLAN_INLINE void pack_values_body(Matrix<const T> v, const TileShape& shape, float* to) {
    constexpr int width = 2 * lanes;
    for (std::int64_t i = 0; i < shape.cols; i += width) {
        float* tile = to + i * shape.rows;
        const std::int64_t there = std::min<std::int64_t>(width, shape.cols - i);
        for (std::int64_t j = 0; j < shape.rows; ++j) {
            const T* row = v.data + j * v.stride + i;
            float* place = tile + j * width;
            if (there == width) {
                typename Lane<lanes>::Float x;
                typename Lane<lanes>::Float y;
                load<lanes>(x, row);
                load<lanes>(y, row + lanes);
                put<lanes>(place, x);
                put<lanes>(place + lanes, y);
            } else {
                for (std::int64_t c = 0; c < width; ++c) {
                    place[c] = c < there ? to_float(row[c]) : 0.0F;
                }
            }
        }
    }
}

/// Adds the products of a panel with one tile.
template <int lanes>
SHARDPLAN_INLINE void multiply_tile(Matrix<const float> x, const float* w, std::int64_t depth,
                                    typename Lane<lanes>::Float (&sum)[panel_rows][2]) {
    using Float = typename Lane<lanes>::Float;
    for (std::int64_t k = 0; k < depth; ++k) {
        Float a;
        Float b;
        get<lanes>(a, w + k * 2 * lanes);
        get<lanes>(b, w + k * 2 * lanes + lanes);
#pragma GCC unroll 6
        for (int r = 0; r < panel_rows; ++r) {
            const float factor = x.data[r * x.stride + k];
            sum[r][0] += factor * a;
            sum[r][1] += factor * b;
        }
    }
}

template <int lanes>
SHARDPLAN_INLINE void scores_body(Matrix<const float> q, const float* keys, float* scores, const TileShape& shape) {
    for (std::int64_t j = 0; j < shape.cols; j += 2 * lanes) {
        typename Lane<lanes>::Float sum[panel_rows][2] = {};
        multiply_tile<lanes>(q, keys + j * shape.depth, shape.depth, sum);
#pragma GCC unroll 6
        for (int r = 0; r < panel_rows; ++r) {
            put<lanes>(scores + r * score_stride + j, sum[r][0]);
            put<lanes>(scores + r * score_stride + j + lanes, sum[r][1]);
        }
    }
}

template <int lanes>
SHARDPLAN_INLINE void values_body(const float* weights, Matrix<const float> values, Matrix<float> out,
                                  const TileShape& shape, const float* factor) {
    for (std::int64_t i = 0; i < shape.cols; i += 2 * lanes) {
        typename Lane<lanes>::Float sum[panel_rows][2];
#pragma GCC unroll 6
        for (int r = 0; r < panel_rows; ++r) {
            get<lanes>(sum[r][0], out.data + r * out.stride + i);
            get<lanes>(sum[r][1], out.data + r * out.stride + i + lanes);
            sum[r][0] *= factor[r];
            sum[r][1] *= factor[r];
        }
        multiply_tile<lanes>({weights, score_stride}, values.data + i / (2 * lanes) * values.stride, shape.depth, sum);
#pragma GCC unroll 6
        for (int r = 0; r < panel_rows; ++r) {
            put<lanes>(out.data + r * out.stride + i, sum[r][0]);
            put<lanes>(out.data + r * out.stride + i + lanes, sum[r][1]);
        }
    }
}

#define SHARDPLAN_ATTENTION_FUNCTIONS(suffix, lanes, attribute)                                                       \
    attribute void soften_##suffix(Matrix<float> scores, std::span<const base::Interval> seen,                        \
                                   const RunningSums& sums) {                                                         \
        soften_body<lanes>(scores, seen, sums);                                                                       \
    }                                                                                                                 \
    attribute void pack_keys_f32_##suffix(Matrix<const float> k, const TileShape& shape, float* to) {                 \
        pack_keys_body<lanes, float>(k, shape, to);                                                                   \
    }                                                                                                                 \
    attribute void pack_keys_bf16_##suffix(Matrix<const std::uint16_t> k, const TileShape& shape, float* to) {        \
        pack_keys_body<lanes, std::uint16_t>(k, shape, to);                                                           \
    }                                                                                                                 \
    attribute void pack_values_f32_##suffix(Matrix<const float> v, const TileShape& shape, float* to) {               \
        pack_values_body<lanes, float>(v, shape, to);                                                                 \
    }                                                                                                                 \
    attribute void pack_values_bf16_##suffix(Matrix<const std::uint16_t> v, const TileShape& shape, float* to) {      \
        pack_values_body<lanes, std::uint16_t>(v, shape, to);                                                         \
    }                                                                                                                 \
    attribute void scores_##suffix(Matrix<const float> q, const float* keys, float* scores, const TileShape& shape) { \
        scores_body<lanes>(q, keys, scores, shape);                                                                   \
    }                                                                                                                 \
    attribute void values_##suffix(const float* weights, Matrix<const float> values, Matrix<float> out,               \
                                   const TileShape& shape, const float* factor) {                                     \
        values_body<lanes>(weights, values, out, shape, factor);                                                      \
    }                                                                                                                 \
    constexpr AttentionFunctions functions_##suffix{.name = #suffix,                                                  \
                                                    .width = 2 * lanes,                                               \
                                                    .pack_keys_f32 = pack_keys_f32_##suffix,                          \
                                                    .pack_keys_bf16 = pack_keys_bf16_##suffix,                        \
                                                    .pack_values_f32 = pack_values_f32_##suffix,                      \
                                                    .pack_values_bf16 = pack_values_bf16_##suffix,                    \
                                                    .scores = scores_##suffix,                                        \
                                                    .values = values_##suffix,                                        \
                                                    .soften = soften_##suffix};

SHARDPLAN_ATTENTION_FUNCTIONS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_ATTENTION_FUNCTIONS(avx2, 8, SHARDPLAN_AVX2)
SHARDPLAN_ATTENTION_FUNCTIONS(avx512, 16, SHARDPLAN_AVX512)
#endif

}  // namespace

const std::vector<AttentionFunctions>& available_attention_functions() {
    static const std::vector<AttentionFunctions> available =
        runnable<AttentionFunctions>(SHARDPLAN_COMPILED(functions_));
    return available;
}

}  // namespace shardplan::kernels
