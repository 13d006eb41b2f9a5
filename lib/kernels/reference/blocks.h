// The loops over one block of 64 columns (tiles.h), for every kind of element. Part of tiles.cpp.
// Every sum is a chain over k in order: neither the number of rows nor the grouping of columns changes a bit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/reference/lanes.h"

namespace shardplan::kernels {

/// A step is what stands under one or, for pairs, two values of x, which become `parts` vectors.
template <int lanes, typename T>
struct PlainBlock {
    using Element = T;
    using Factor = float;
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = 1;

    SHARDPLAN_INLINE static void unpack(Float (&to)[parts], const T* from) { load<lanes>(to[0], from); }
    SHARDPLAN_INLINE static void add(Float& sum, const float* x, const Float& w) { sum += *x * w; }
};

template <int lanes>
struct PairBlock {
    using Element = std::uint32_t;
    using Factor = float;
    using Float = typename Lane<lanes>::Float;
    static constexpr int parts = 2;

    SHARDPLAN_INLINE static void unpack(Float (&to)[parts], const std::uint32_t* from) {
        load_pairs<lanes>(to[0], to[1], from);
    }
    SHARDPLAN_INLINE static void add(Float& sum, const float* x, const Float& w) { sum += *x * w; }
};

#if defined(__x86_64__)
/// With the instruction that multiplies pairs (AVX512_BF16). In assembler, because a function for it would have to
/// carry the target attribute and could then not be part of a body that serves all instruction sets.
struct DotBlock {
    using Element = std::uint32_t;
    using Factor = std::uint32_t;
    using Float = Lane<16>::Float;
    static constexpr int parts = 1;

    SHARDPLAN_INLINE static void unpack(Float (&to)[parts], const std::uint32_t* from) {
        std::memcpy(&to[0], from, sizeof(to[0]));
    }
    SHARDPLAN_INLINE static void add(Float& sum, const std::uint32_t* x, const Float& w) {
        asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*x));
    }
};
#endif

/// A block of 64 columns in strips of `width` columns, each with all steps one behind the other, `stride` elements from
/// strip to strip. A strip as wide as the block needs no stride.
template <typename Kind, int width_>
struct Strips {
    static constexpr int width = width_;
    const typename Kind::Element* data = nullptr;
    std::int64_t stride = 0;

    SHARDPLAN_INLINE const typename Kind::Element* at(std::int64_t step, std::int64_t column) const {
        return data + column / width * stride + step * width + column % width;
    }
};

/// to[k, 0..16) = the values of `steps` steps of one strip.
template <typename Kind>
SHARDPLAN_INLINE void unpack_body(const typename Kind::Element* strip, std::int64_t steps, float* to) {
    using Float = typename Kind::Float;
    constexpr int lanes = sizeof(Float) / sizeof(float);
    for (std::int64_t step = 0; step < steps; ++step) {
        for (std::int64_t c = 0; c < strip_columns; c += lanes) {
            Float values[Kind::parts];
            Kind::unpack(values, strip + step * strip_columns + c);
            for (int p = 0; p < Kind::parts; ++p) {
                std::memcpy(to + (step * Kind::parts + p) * strip_columns + c, &values[p], sizeof(Float));
            }
        }
    }
}

/// Sums of `rows` rows and `vectors` vectors of columns over all of x.
template <int rows, int vectors, typename Kind, int width>
SHARDPLAN_INLINE void block_part(Matrix<const typename Kind::Factor> x, Strips<Kind, width> block, Matrix<float> out,
                                 std::int64_t depth) {
    using Float = typename Kind::Float;
    constexpr int lanes = sizeof(Float) / sizeof(float);
    Float sum[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            load<lanes>(sum[i][c], out.data + i * out.stride + c * lanes);
        }
    }
    for (std::int64_t k = 0; k < depth; k += Kind::parts) {
        Float w[vectors][Kind::parts];
#pragma GCC unroll 16
        for (int c = 0; c < vectors; ++c) {
            Kind::unpack(w[c], block.at(k / Kind::parts, c * lanes));
            if constexpr (rows == 1) {  // used at once: the sums take half of the registers
#pragma GCC unroll 2
                for (int p = 0; p < Kind::parts; ++p) {
                    Kind::add(sum[0][c], x.data + k + p, w[c][p]);
                }
            }
        }
        if constexpr (rows == 1) {
            continue;
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
            for (int p = 0; p < Kind::parts; ++p) {
#pragma GCC unroll 16
                for (int c = 0; c < vectors; ++c) {
                    Kind::add(sum[i][c], x.data + i * x.stride + k + p, w[c][p]);
                }
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

/// Vectors of columns whose sums fit into the registers beside what is multiplied.
template <int lanes, int rows>
constexpr int block_vectors() {
    constexpr int all = static_cast<int>(block_columns) / lanes;
    constexpr int fitting = lanes == 16 ? 4 : rows == 1 ? 8 : rows <= 3 ? 4 : 2;
    return std::min(all, fitting);
}

template <int rows, typename Kind, int width>
SHARDPLAN_INLINE void block_rows(Matrix<const typename Kind::Factor> x, Strips<Kind, width> block, Matrix<float> out,
                                 std::int64_t depth) {
    constexpr int lanes = sizeof(typename Kind::Float) / sizeof(float);
    constexpr int vectors = block_vectors<lanes, rows>();
    for (std::int64_t c = 0; c < block_columns; c += vectors * lanes) {
        block_part<rows, vectors>(x, Strips<Kind, width>{block.at(0, c), block.stride}, at(out, 0, c), depth);
    }
}

/// Pieces of k that stay in the first cache while all rows and columns use them.
constexpr std::int64_t block_piece = 64;

template <typename Kind, int width>
SHARDPLAN_INLINE void block_body(Matrix<const typename Kind::Factor> x, Strips<Kind, width> block, Matrix<float> out,
                                 const TileShape& shape) {
    constexpr std::int64_t most = 6;
    constexpr int lanes = sizeof(typename Kind::Float) / sizeof(float);
    // Rows that are taken together read whole strips, one after the other.
    const bool once = shape.rows <= most && (width < block_columns || shape.rows == 1 || lanes == 16);
    const std::int64_t piece = once ? shape.depth : block_piece;
    for (std::int64_t k = 0; k < shape.depth; k += piece) {
        const std::int64_t depth = std::min(piece, shape.depth - k);
        const Strips<Kind, width> part{block.at(k / Kind::parts, 0), block.stride};
        for (std::int64_t i = 0; i < shape.rows;) {
            const std::int64_t left = shape.rows - i;
            const std::int64_t rows = left <= most ? left : left < 2 * most ? (left + 1) / 2 : most;
            switch (rows) {
                case 1: block_rows<1>(at(x, i, k), part, at(out, i, 0), depth); break;
                case 2: block_rows<2>(at(x, i, k), part, at(out, i, 0), depth); break;
                case 3: block_rows<3>(at(x, i, k), part, at(out, i, 0), depth); break;
                case 4: block_rows<4>(at(x, i, k), part, at(out, i, 0), depth); break;
                case 5: block_rows<5>(at(x, i, k), part, at(out, i, 0), depth); break;
                default: block_rows<6>(at(x, i, k), part, at(out, i, 0), depth); break;
            }
            i += rows;
        }
    }
}

}  // namespace shardplan::kernels
