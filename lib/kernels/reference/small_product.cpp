#include "kernels/reference/small_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/reference/elements.h"
#include "kernels/reference/product_parts.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

/// Columns between two writes of results: whole groups of those that the tiles read at once.
constexpr std::int64_t few_columns = 36;

/// Sums of columns [n0, n0 + cols) of all rows; the pieces of k are those of the tiles.
template <typename T>
void sum_columns(const float* x, const T* w, const MatmulShape& shape, std::int64_t n0, std::int64_t cols,
                 float* sums) {
    const std::int64_t group = shape.m > 2 ? 3 : 4;  // read at once, as the tiles do
    for (std::int64_t j = 0; j < cols; j += group) {
        const std::int64_t width = std::min(group, cols - j);
        for (std::int64_t k = 0; k < shape.k; k += tile_depth) {
            const TileShape part{shape.m, width, std::min(tile_depth, shape.k - k)};
            dot_tile({x + k, shape.k}, Matrix<const T>{w + (n0 + j) * shape.k + k, shape.k}, {sums + j, few_columns},
                     part);
        }
    }
}

template <typename T>
void multiply_columns(const float* x, const MatmulShape& shape, std::span<const ProductPart> parts) {
    for_each_piece(parts, {few_columns, 1, shape.k}, [&](const PartPiece& piece) {
        float sums[small_rows * few_columns] = {};
        const ProductPart& part = parts[piece.part];
        const std::int64_t cols = piece.end - piece.begin;
        sum_columns(x, reinterpret_cast<const T*>(part.w), shape, piece.begin, cols, sums);
        for (std::int64_t i = 0; i < shape.m; ++i) {
            store_floats(sums + i * few_columns, cols, part.y, i * part.n + piece.begin);
        }
    });
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// Calls sum(part, block number, its sums) for all blocks and stores what it gives.
template <typename Sum>
void for_each_block(const MatmulShape& shape, std::span<const ProductPart> parts, Sum sum) {
    for_each_piece(parts, {block_columns, 1, shape.k}, [&](const PartPiece& piece) {
        float sums[small_rows * block_columns] = {};
        const ProductPart& part = parts[piece.part];
        sum(part, piece.begin / block_columns, Matrix<float>{sums, block_columns});
        for (std::int64_t i = 0; i < shape.m; ++i) {
            store_floats(sums + i * block_columns, piece.end - piece.begin, part.y, i * part.n + piece.begin);
        }
    });
}

void multiply_pairs(const ConstView& x, const MatmulShape& shape, std::span<const ProductPart> parts,
                    const TileFunctions& functions) {
    const auto words = [](const ProductPart& part) { return reinterpret_cast<const std::uint32_t*>(part.w); };
    const std::int64_t block = round_up(shape.k, block_depth(DType::bf16)) / 2 * block_columns;
    const std::int64_t used = (shape.k + 1) / 2;
    // Rows of x end with a zero where k is odd, as the blocks do.
    if (functions.block_pairs != nullptr) {
        std::vector<std::uint32_t> rows(static_cast<std::size_t>(shape.m * used));
        for (std::int64_t i = 0; i < shape.m && shape.k > 0; ++i) {
            std::memcpy(rows.data() + i * used, x.as<std::uint16_t>() + i * shape.k,
                        static_cast<std::size_t>(shape.k) * sizeof(std::uint16_t));
        }
        for_each_block(shape, parts, [&](const ProductPart& part, std::int64_t i, Matrix<float> sums) {
            functions.block_pairs({rows.data(), used}, words(part) + i * block, sums, {shape.m, block_columns, used});
        });
        return;
    }
    std::vector<float> rows(static_cast<std::size_t>(shape.m * 2 * used));
    for (std::int64_t i = 0; i < shape.m; ++i) {
        load_floats(x, i * shape.k, shape.k, rows.data() + i * 2 * used);
    }
    for_each_block(shape, parts, [&](const ProductPart& part, std::int64_t i, Matrix<float> sums) {
        functions.block_bf16({rows.data(), 2 * used}, words(part) + i * block, sums,
                             {shape.m, block_columns, 2 * used});
    });
}

}  // namespace

std::int64_t block_depth(DType dtype) {
    return dtype == DType::bf16 ? 32 : 16;
}

void multiply_few_blocks(const ConstView& x, const MatmulShape& shape, std::span<const ProductPart> parts,
                         const TileFunctions& functions) {
    if (shape.m == 0 || parts.empty()) {
        return;
    }
    if (x.dtype == DType::bf16) {
        multiply_pairs(x, shape, parts, functions);
        return;
    }
    const std::int64_t block = round_up(shape.k, block_depth(DType::f32)) * block_columns;
    for_each_block(shape, parts, [&](const ProductPart& part, std::int64_t i, Matrix<float> sums) {
        functions.block_f32({x.as<float>(), shape.k}, reinterpret_cast<const float*>(part.w) + i * block, sums,
                            {shape.m, block_columns, shape.k});
    });
}

void multiply_few_blocks(const ConstView& x, const std::byte* blocks, const MatmulShape& shape, const View& y,
                         const TileFunctions& functions) {
    const ProductPart part{blocks, shape.n, y};
    multiply_few_blocks(x, shape, {&part, 1}, functions);
}

void multiply_few(const ConstView& x, const MatmulShape& shape, std::span<const ProductPart> parts) {
    if (shape.m == 0 || parts.empty()) {
        return;
    }
    std::vector<float> room;
    const float* rows = as_floats(x, room);
    if (x.dtype == DType::f32) {
        multiply_columns<float>(rows, shape, parts);
    } else {
        multiply_columns<std::uint16_t>(rows, shape, parts);
    }
}

void multiply_few(const ConstView& x, const ConstView& w, const MatmulShape& shape, const View& y) {
    const ProductPart part{w.data, shape.n, y};
    multiply_few(x, shape, {&part, 1});
}

float read_all(const std::byte* data, std::int64_t bytes) {
    constexpr std::int64_t piece = 65536;
    const auto* values = reinterpret_cast<const float*>(data);
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    float total = 0.0F;
#pragma omp parallel for schedule(static) reduction(+ : total) if (worth_threads(count))
    for (std::int64_t begin = 0; begin < count; begin += piece) {
        total += tile_functions().sum(values + begin, std::min(piece, count - begin));
    }
    return total;
}

const float* as_floats(const ConstView& x, std::vector<float>& room) {
    if (x.dtype == DType::f32) {
        return x.as<float>();
    }
    const std::int64_t count = x.count();
    constexpr std::int64_t piece = 4096;
    room.resize(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static) if (worth_threads(count))
    for (std::int64_t begin = 0; begin < count; begin += piece) {
        load_floats(x, begin, std::min(piece, count - begin), room.data() + begin);
    }
    return room.data();
}

}  // namespace shardplan::kernels
