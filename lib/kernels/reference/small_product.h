// Products of few rows: a token of a decode step needs the whole weight for a few operations per element, so reading it
// is what takes the time. Each thread reads one range of the weight, once. A row's result depends neither on the number
// of rows nor on which columns are computed beside each other.
#pragma once

#include <span>
#include <vector>

#include "kernels/reference/matmul.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {

/// Up to so many rows each reading of the weight serves them all; more are better off in blocks.
constexpr std::int64_t small_rows = 8;

/// One of several weights that are multiplied with the same rows.
struct ProductPart {
    const std::byte* w = nullptr;
    std::int64_t n = 0;
    View y;
};

/// y = x W^T for w [N, K] of the dtype of x: the bits of the tiles' product. @pre at most small_rows rows
void multiply_few(const ConstView& x, const ConstView& w, const MatmulShape& shape, const View& y);
/// The same for several weights in one pass; shape.n is not used.
void multiply_few(const ConstView& x, const MatmulShape& shape, std::span<const ProductPart> parts);

/// The same for the blocks of oneDNN (tiles.h), padded with zeros to whole blocks of 64 columns and of `block_depth` k.
void multiply_few_blocks(const ConstView& x, const std::byte* blocks, const MatmulShape& shape, const View& y,
                         const TileFunctions& functions = tile_functions());
void multiply_few_blocks(const ConstView& x, const MatmulShape& shape, std::span<const ProductPart> parts,
                         const TileFunctions& functions = tile_functions());
std::int64_t block_depth(tensor::DType dtype);

/// Reads all of it with every thread, as fast as a plain loop can: what the speed of reading weights is judged by.
/// The result has no meaning. @pre data is aligned to 4 bytes
float read_all(const std::byte* data, std::int64_t bytes);

/// x as floats: itself, or a copy in `room`, which must outlive the result.
const float* as_floats(const ConstView& x, std::vector<float>& room);

}  // namespace shardplan::kernels
