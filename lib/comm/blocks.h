// Blocks of dense row-major tensors: a block is an interval of one dimension, all of the others. "Packed" is the block
// itself as a dense row-major tensor. Pure memory arithmetic, no communication. Buffers must not overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/interval.h"
#include "tensor/view.h"

namespace shardplan::comm {

/// How a block lies in its tensor: `count` runs of `bytes`, the first at `offset`, each `stride` behind the last.
struct Runs {
    std::int64_t count = 1;
    std::int64_t bytes = 0;
    std::int64_t offset = 0;
    std::int64_t stride = 0;
};

/// @pre 0 <= range.begin <= range.end <= shape[dim]
Runs runs_of(const tensor::Shape& shape, tensor::DType dtype, int dim, base::Interval range);

/// Block `index` of n equal blocks of dimension `dim`. @pre n divides shape[dim]
base::Interval nth_block(const tensor::Shape& shape, int dim, std::int64_t n, std::int64_t index);

/// Calls visit(offset in the tensor, offset in the part, bytes) for the bytes `part` of the packed block, piece by
/// piece in order. @pre part lies within the block
template <typename Visit>
void visit_part(const Runs& runs, base::Interval part, Visit visit) {
    if (part.empty()) {
        return;
    }
    std::int64_t within = part.begin % runs.bytes;
    std::int64_t run = runs.offset + part.begin / runs.bytes * runs.stride;
    for (std::int64_t at = part.begin; at < part.end; run += runs.stride, within = 0) {
        const std::int64_t size = std::min(runs.bytes - within, part.end - at);
        visit(run + within, at - part.begin, size);
        at += size;
    }
}

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
