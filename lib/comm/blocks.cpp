#include "comm/blocks.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace shardplan::comm {

Runs runs_of(const tensor::Shape& shape, tensor::DType dtype, int dim, base::Interval range) {
    std::int64_t inner = tensor::size_of(dtype);
    for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < shape.size(); ++d) {
        inner = base::checked_mul(inner, shape[d]);
    }
    Runs runs;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dim); ++d) {
        runs.count = base::checked_mul(runs.count, shape[d]);
    }
    runs.bytes = range.size() * inner;
    runs.offset = range.begin * inner;
    runs.stride = shape[static_cast<std::size_t>(dim)] * inner;
    return runs;
}

base::Interval nth_block(const tensor::Shape& shape, int dim, std::int64_t n, std::int64_t index) {
    const std::int64_t size = shape[static_cast<std::size_t>(dim)] / n;
    return {index * size, (index + 1) * size};
}

void pack_block(const tensor::ConstView& whole, int dim, base::Interval range, std::byte* packed) {
    const Runs runs = runs_of(whole.shape, whole.dtype, dim, range);
    if (runs.bytes == 0) {
        return;
    }
    const std::byte* source = whole.data + runs.offset;
    for (std::int64_t i = 0; i < runs.count; ++i) {
        std::memcpy(packed + i * runs.bytes, source + i * runs.stride, static_cast<std::size_t>(runs.bytes));
    }
}

void unpack_block(const std::byte* packed, int dim, base::Interval range, const tensor::View& whole) {
    const Runs runs = runs_of(whole.shape, whole.dtype, dim, range);
    if (runs.bytes == 0) {
        return;
    }
    std::byte* target = whole.data + runs.offset;
    for (std::int64_t i = 0; i < runs.count; ++i) {
        std::memcpy(target + i * runs.stride, packed + i * runs.bytes, static_cast<std::size_t>(runs.bytes));
    }
}

void pack_blocks(const tensor::ConstView& whole, int dim, std::int64_t n, std::byte* packed) {
    const std::int64_t block_bytes = whole.bytes() / n;
    for (std::int64_t i = 0; i < n; ++i) {
        pack_block(whole, dim, nth_block(whole.shape, dim, n, i), packed + i * block_bytes);
    }
}

void unpack_blocks(const std::byte* packed, int dim, std::int64_t n, const tensor::View& whole) {
    const std::int64_t block_bytes = whole.bytes() / n;
    for (std::int64_t i = 0; i < n; ++i) {
        unpack_block(packed + i * block_bytes, dim, nth_block(whole.shape, dim, n, i), whole);
    }
}

bool blocks_are_contiguous(const tensor::Shape& shape, int dim) {
    return std::all_of(shape.begin(), std::next(shape.begin(), dim), [](std::int64_t size) { return size == 1; });
}

}  // namespace shardplan::comm
