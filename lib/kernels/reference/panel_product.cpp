#include "kernels/reference/panel_product.h"

#include <algorithm>
#include <vector>

#include "kernels/reference/elements.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

/// A panel and the sums of the rows that use it stay in the second cache.
constexpr std::int64_t panel_depth = 256;
constexpr std::int64_t panel_rows = 192;

void widen(const float* from, std::int64_t count, float* to) {
    std::copy_n(from, count, to);
}

void widen(const std::uint16_t* from, std::int64_t count, float* to) {
    tile_functions().widen(from, count, to);
}

/// One block of columns for some rows of a group.
struct Tile {
    const PanelGroup* group = nullptr;
    std::int64_t column = 0;
    std::int64_t row = 0;  ///< of x
    std::int64_t rows = 0;
};

template <typename T>
void multiply_tile(const float* x, WeightSize size, const Tile& tile, const View& y) {
    float sums[panel_rows * block_columns];
    float panel[panel_depth * block_columns];
    std::fill_n(sums, tile.rows * block_columns, 0.0F);
    const std::int64_t cols = std::min(block_columns, size.outputs - tile.column);
    if (cols < block_columns) {
        std::fill(std::begin(panel), std::end(panel), 0.0F);
    }
    const T* w = reinterpret_cast<const T*>(tile.group->w) + tile.column;
    for (std::int64_t k = 0; k < size.inputs; k += panel_depth) {
        const std::int64_t depth = std::min(panel_depth, size.inputs - k);
        for (std::int64_t i = 0; i < depth; ++i) {
            widen(w + (k + i) * size.outputs, cols, panel + i * block_columns);
        }
        tile_functions().block_f32({x + tile.row * size.inputs + k, size.inputs}, panel, {sums, block_columns},
                                   {tile.rows, block_columns, depth});
    }
    for (std::int64_t i = 0; i < tile.rows; ++i) {
        store_floats(sums + i * block_columns, cols, y, (tile.row + i) * size.outputs + tile.column);
    }
}

std::vector<Tile> tiles_of(std::span<const PanelGroup> groups, WeightSize size) {
    std::vector<Tile> tiles;
    for (const PanelGroup& group : groups) {
        const std::int64_t rows = group.end - group.begin;
        if (rows == 0) {
            continue;
        }
        const std::int64_t blocks = (rows + panel_rows - 1) / panel_rows;
        for (std::int64_t column = 0; column < size.outputs; column += block_columns) {
            for (std::int64_t i = 0; i < blocks; ++i) {
                const std::int64_t first = rows * i / blocks;
                tiles.push_back({&group, column, group.begin + first, rows * (i + 1) / blocks - first});
            }
        }
    }
    return tiles;
}

}  // namespace

void multiply_panels(const ConstView& x, std::span<const PanelGroup> groups, WeightSize size, const View& y) {
    const std::vector<Tile> tiles = tiles_of(groups, size);
    std::vector<float> room;
    const float* rows = as_floats(x, room);
#pragma omp parallel for schedule(dynamic) if (worth_threads(x.count() * size.outputs))
    for (std::int64_t i = 0; i < std::ssize(tiles); ++i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i)];
        if (x.dtype == tensor::DType::f32) {
            multiply_tile<float>(rows, size, tile, y);
        } else {
            multiply_tile<std::uint16_t>(rows, size, tile, y);
        }
    }
}

}  // namespace shardplan::kernels
