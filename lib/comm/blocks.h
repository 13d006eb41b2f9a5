// Blocks of dense row-major tensors: a block is an interval of one dimension, all of the others. "Packed" is the block
// itself as a dense row-major tensor. Pure memory arithmetic, no communication. Buffers must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/interval.h"
#include "tensor/view.h"

namespace shardplan::comm {

/// Copies `range` of dimension `dim` of `whole` into `packed`. @pre 0 <= range.begin <= range.end <= whole.shape[dim]
void pack_block(const tensor::ConstView& whole, int dim, base::Interval range, std::byte* packed);

/// The inverse of pack_block.
void unpack_block(const std::byte* packed, int dim, base::Interval range, const tensor::View& whole);

/// Cuts dimension `dim` into n equal blocks and packs them one behind the other. @pre n divides whole.shape[dim]
void pack_blocks(const tensor::ConstView& whole, int dim, std::int64_t n, std::byte* packed);

/// The inverse of pack_blocks.
void unpack_blocks(const std::byte* packed, int dim, std::int64_t n, const tensor::View& whole);

/// True when the blocks along `dim` already lie one behind the other, so that packing would be a plain copy.
bool blocks_are_contiguous(const tensor::Shape& shape, int dim);

}  // namespace shardplan::comm
