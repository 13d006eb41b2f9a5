#include "kernels/reference/tiles.h"

#include <cstring>

// The bodies are always_inline templates, instantiated inside of functions that carry a target attribute: that is how
// one source serves several instruction sets. Vectors are passed by reference only, because passing them by value would
// depend on the target's calling convention.
#define SHARDPLAN_INLINE inline __attribute__((always_inline))

namespace shardplan::kernels {
namespace {

template <int lanes>
struct Lane {
    typedef float Float __attribute__((vector_size(lanes * 4)));
    typedef std::int32_t Int __attribute__((vector_size(lanes * 4)));
    typedef std::uint32_t Word __attribute__((vector_size(lanes * 4)));
    typedef std::uint16_t Half __attribute__((vector_size(lanes * 2)));
};

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const float* from) {
    std::memcpy(&to, from, sizeof(to));
}

template <int lanes>
SHARDPLAN_INLINE void load(typename Lane<lanes>::Float& to, const std::uint16_t* from) {
    typename Lane<lanes>::Half half;
    std::memcpy(&half, from, sizeof(half));
    const auto word = __builtin_convertvector(half, typename Lane<lanes>::Word) << 16;
    std::memcpy(&to, &word, sizeof(to));
}

SHARDPLAN_INLINE float to_float(float value) {
    return value;
}

SHARDPLAN_INLINE float to_float(std::uint16_t bits) {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value = 0.0F;
    std::memcpy(&value, &word, sizeof(value));
    return value;
}

template <int lanes>
SHARDPLAN_INLINE float sum_lanes(const typename Lane<lanes>::Float& vector) {
    float part[lanes];
    std::memcpy(part, &vector, sizeof(part));
    for (int width = lanes / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) {
            part[i] += part[i + width];
        }
    }
    return part[0];
}

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
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
            float total = sum_lanes<lanes>(sum[i][j]);
            for (std::int64_t k = whole; k < depth; ++k) {
                total += x.data[i * x.stride + k] * to_float(w.data[j * w.stride + k]);
            }
            out.data[i * out.stride + j] += total;
        }
    }
}

template <typename T>
SHARDPLAN_INLINE Matrix<T> at(Matrix<T> m, std::int64_t row, std::int64_t col) {
    return {m.data + row * m.stride + col, m.stride};
}

template <int lanes, int rows, typename T>
SHARDPLAN_INLINE void dot_rows(Matrix<const float> x, Matrix<const T> w, Matrix<float> out, const TileShape& shape) {
    constexpr int cols = 3;  // 4 x 3 sums, 3 of w and 1 of x fill the 16 registers of AVX2
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
    for (; i < shape.rows; ++i) {
        dot_rows<lanes, 1, T>(at(x, i, 0), w, at(out, i, 0), shape);
    }
}

template <int lanes, int rows>
SHARDPLAN_INLINE void weighted_rows(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,
                                    const TileShape& shape) {
    using Float = typename Lane<lanes>::Float;
    constexpr int vectors = 2;
    std::int64_t j = 0;
    for (; j + vectors * lanes <= shape.cols; j += vectors * lanes) {
        Float sum[rows][vectors];
        for (int i = 0; i < rows; ++i) {
            for (int c = 0; c < vectors; ++c) {
                load<lanes>(sum[i][c], out.data + i * out.stride + j + c * lanes);
            }
        }
        for (std::int64_t k = 0; k < shape.depth; ++k) {
            Float b[vectors];
#pragma GCC unroll 4
            for (int c = 0; c < vectors; ++c) {
                load<lanes>(b[c], v.data + k * v.stride + j + c * lanes);
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
                for (int c = 0; c < vectors; ++c) {
                    sum[i][c] += p.data[i * p.stride + k] * b[c];
                }
            }
        }
        for (int i = 0; i < rows; ++i) {
            for (int c = 0; c < vectors; ++c) {
                std::memcpy(out.data + i * out.stride + j + c * lanes, &sum[i][c], sizeof(Float));
            }
        }
    }
    for (; j < shape.cols; ++j) {
        for (int i = 0; i < rows; ++i) {
            float sum = out.data[i * out.stride + j];
            for (std::int64_t k = 0; k < shape.depth; ++k) {
                sum += p.data[i * p.stride + k] * v.data[k * v.stride + j];
            }
            out.data[i * out.stride + j] = sum;
        }
    }
}

template <int lanes>
SHARDPLAN_INLINE void weighted_body(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,
                                    const TileShape& shape) {
    std::int64_t i = 0;
    for (; i + 4 <= shape.rows; i += 4) {
        weighted_rows<lanes, 4>(at(p, i, 0), v, at(out, i, 0), shape);
    }
    for (; i < shape.rows; ++i) {
        weighted_rows<lanes, 1>(at(p, i, 0), v, at(out, i, 0), shape);
    }
}

/// exp(x) for x <= 0: 2^n exp(r) with |r| <= ln(2) / 2, and the Taylor polynomial of degree 7 (remainder below 1e-8).
template <int lanes>
SHARDPLAN_INLINE void exp_vector(typename Lane<lanes>::Float& x) {
    using Float = typename Lane<lanes>::Float;
    using Int = typename Lane<lanes>::Int;
    const Float lowest = Float{} - 86.0F;
    const Int tiny = x < lowest;
    const Float clamped = tiny ? lowest : x;
    // Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const Float shifter = Float{} + 12582912.0F;
    const Float shifted = clamped * 1.44269504088896341F + shifter;
    const Float n = shifted - shifter;
    const Float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
    Float sum = Float{} + 1.0F / 5040;
    sum = sum * r + 1.0F / 720;
    sum = sum * r + 1.0F / 120;
    sum = sum * r + 1.0F / 24;
    sum = sum * r + 1.0F / 6;
    sum = sum * r + 0.5F;
    sum = sum * r + 1.0F;
    sum = sum * r + 1.0F;
    const Int power = (__builtin_convertvector(n, Int) + 127) << 23;
    Float scale;
    std::memcpy(&scale, &power, sizeof(scale));
    x = tiny ? Float{} : sum * scale;
}

template <int lanes>
SHARDPLAN_INLINE float exp_sum_body(float* values, std::int64_t count, float shift) {
    using Float = typename Lane<lanes>::Float;
    Float total = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        Float x;
        load<lanes>(x, values + i);
        x -= shift;
        exp_vector<lanes>(x);
        total += x;
        std::memcpy(values + i, &x, sizeof(x));
    }
    float sum = sum_lanes<lanes>(total);
    if (i < count) {
        const auto rest = static_cast<std::size_t>(count - i) * sizeof(float);
        Float x = {};
        std::memcpy(&x, values + i, rest);
        x -= shift;
        exp_vector<lanes>(x);
        std::memcpy(values + i, &x, rest);
        for (; i < count; ++i) {
            sum += values[i];
        }
    }
    return sum;
}

#define SHARDPLAN_TILE_FUNCTIONS(suffix, lanes, attribute)                                                      \
    attribute void dot_f32_##suffix(Matrix<const float> x, Matrix<const float> w, Matrix<float> out,            \
                                    const TileShape& shape) {                                                   \
        dot_body<lanes, float>(x, w, out, shape);                                                               \
    }                                                                                                           \
    attribute void dot_bf16_##suffix(Matrix<const float> x, Matrix<const std::uint16_t> w, Matrix<float> out,   \
                                     const TileShape& shape) {                                                  \
        dot_body<lanes, std::uint16_t>(x, w, out, shape);                                                       \
    }                                                                                                           \
    attribute void weighted_##suffix(Matrix<const float> p, Matrix<const float> v, Matrix<float> out,           \
                                     const TileShape& shape) {                                                  \
        weighted_body<lanes>(p, v, out, shape);                                                                 \
    }                                                                                                           \
    attribute float exp_sum_##suffix(float* values, std::int64_t count, float shift) {                          \
        return exp_sum_body<lanes>(values, count, shift);                                                       \
    }                                                                                                           \
    constexpr TileFunctions functions_##suffix{#suffix, dot_f32_##suffix, dot_bf16_##suffix, weighted_##suffix, \
                                               exp_sum_##suffix};

SHARDPLAN_TILE_FUNCTIONS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_TILE_FUNCTIONS(avx2, 8, __attribute__((target("avx2,fma"))))
SHARDPLAN_TILE_FUNCTIONS(avx512, 16, __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma"))))
#endif

std::vector<TileFunctions> find_available() {
    std::vector<TileFunctions> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        found.push_back(functions_avx512);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found.push_back(functions_avx2);
    }
#endif
    found.push_back(functions_baseline);
    return found;
}

}  // namespace

const std::vector<TileFunctions>& available_tile_functions() {
    static const std::vector<TileFunctions> available = find_available();
    return available;
}

}  // namespace shardplan::kernels
