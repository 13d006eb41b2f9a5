#include "kernels/reference/panel_product.h"

#include <algorithm>
#include <vector>

#include "base/interval.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

/// A panel and the sums of the rows that use it stay in the second cache.
constexpr std::int64_t panel_depth = 256;
constexpr std::int64_t panel_rows = 192;

/// Few rows take the weight as it comes: so many columns of so many rows of it stay in the first cache.
constexpr std::int64_t strip_width = 512;
constexpr std::int64_t strip_depth = 16;

void widen(const float* from, std::int64_t count, float* to) {
    std::copy_n(from, count, to);
}

void widen(const std::uint16_t* from, std::int64_t count, float* to) {
    tile_functions().widen(from, count, to);
}

/// Some columns, a block or a strip, for some rows of a group.
struct Tile {
    const PanelGroup* group = nullptr;
    base::Interval columns;
    base::Interval rows;  ///< of x
    bool strip = false;
};

template <typename T>
const T* weight_at(const Tile& tile, WeightSize size, std::int64_t k) {
    return reinterpret_cast<const T*>(tile.group->w) + k * size.outputs + tile.columns.begin;
}

void store(const float* sums, std::int64_t stride, WeightSize size, const Tile& tile, const View& y) {
    for (std::int64_t i = 0; i < tile.rows.size(); ++i) {
        const std::int64_t place = (tile.rows.begin + i) * size.outputs + tile.columns.begin;
        store_floats(sums + i * stride, tile.columns.size(), y, place);
    }
}

/// Each sum is the same chain over k as that of multiply_block. @pre whole vectors of columns
template <typename T>
void multiply_strip(const float* x, WeightSize size, const Tile& tile, const View& y) {
    float sums[small_rows * strip_width];
    std::fill_n(sums, tile.rows.size() * strip_width, 0.0F);
    for (std::int64_t k = 0; k < size.inputs; k += strip_depth) {
        weighted_tile({x + tile.rows.begin * size.inputs + k, size.inputs},
                      Matrix<const T>{weight_at<T>(tile, size, k), size.outputs}, {sums, strip_width},
                      {tile.rows.size(), tile.columns.size(), std::min(strip_depth, size.inputs - k)});
    }
    store(sums, strip_width, size, tile, y);
}

template <typename T>
void multiply_block(const float* x, WeightSize size, const Tile& tile, const View& y) {
    float sums[panel_rows * block_columns];
    float panel[panel_depth * block_columns];
    std::fill_n(sums, tile.rows.size() * block_columns, 0.0F);
    const std::int64_t cols = tile.columns.size();
    if (cols < block_columns) {
        std::fill(std::begin(panel), std::end(panel), 0.0F);
    }
    for (std::int64_t k = 0; k < size.inputs; k += panel_depth) {
        const std::int64_t depth = std::min(panel_depth, size.inputs - k);
        for (std::int64_t i = 0; i < depth; ++i) {
            widen(weight_at<T>(tile, size, k + i), cols, panel + i * block_columns);
        }
        tile_functions().block_f32({x + tile.rows.begin * size.inputs + k, size.inputs}, panel, {sums, block_columns},
                                   {tile.rows.size(), block_columns, depth});
    }
    store(sums, block_columns, size, tile, y);
}

void add_tiles(const PanelGroup& group, WeightSize size, std::vector<Tile>& tiles) {
    const std::int64_t rows = group.end - group.begin;
    std::int64_t column = 0;
    if (rows <= small_rows) {
        const std::int64_t whole = size.outputs - size.outputs % block_columns;
        for (; column < whole; column = std::min(whole, column + strip_width)) {
            tiles.push_back({&group, {column, std::min(whole, column + strip_width)}, {group.begin, group.end}, true});
        }
    }
    const std::int64_t blocks = (rows + panel_rows - 1) / panel_rows;
    for (; column < size.outputs; column += block_columns) {
        for (std::int64_t i = 0; i < blocks; ++i) {
            tiles.push_back({&group,
                             {column, std::min(size.outputs, column + block_columns)},
                             {group.begin + rows * i / blocks, group.begin + rows * (i + 1) / blocks},
                             false});
        }
    }
}

}  // namespace

void multiply_panels(const ConstView& x, std::span<const PanelGroup> groups, WeightSize size, const View& y) {
    std::vector<Tile> tiles;
    for (const PanelGroup& group : groups) {
        if (group.begin < group.end) {
            add_tiles(group, size, tiles);
        }
    }
    std::vector<float> room;
    const float* rows = as_floats(x, room);
    const auto multiply = [&]<typename T>(T /*element*/) {
#pragma omp parallel for schedule(dynamic) if (worth_threads(x.count() * size.outputs))
        for (std::int64_t i = 0; i < std::ssize(tiles); ++i) {
            const Tile& tile = tiles[static_cast<std::size_t>(i)];
            tile.strip ? multiply_strip<T>(rows, size, tile, y) : multiply_block<T>(rows, size, tile, y);
        }
    };
    x.dtype == tensor::DType::f32 ? multiply(0.0F) : multiply(std::uint16_t{0});
}

}  // namespace shardplan::kernels
