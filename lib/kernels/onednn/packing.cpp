#include "kernels/onednn/packing.h"

#include <span>
#include <vector>

#include "kernels/reference/small_product.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels::onednn {

Packing packing_of(const Blocking& blocking, const MatrixDesc& w) {
    if (blocking.offset != 0) {
        return Packing::other;
    }
    if (blocking.inner_count == 0) {
        const bool rows = blocking.strides[0] == w.cols && blocking.strides[1] == 1;
        const bool columns = blocking.strides[0] == 1 && blocking.strides[1] == w.rows;
        return rows || columns ? Packing::plain : Packing::other;
    }
    struct Inner {
        std::int64_t dimension, size;
    };
    const bool pairs = w.dtype == tensor::DType::bf16;
    std::vector<Inner> wanted = {{0, 16}, {1, block_columns}};
    if (pairs) {
        wanted.push_back({0, 2});
    }
    if (blocking.inner_count != std::ssize(wanted)) {
        return Packing::other;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (blocking.dimensions[i] != wanted[i].dimension || blocking.sizes[i] != wanted[i].size) {
            return Packing::other;
        }
    }
    // The blocks of k of one block of columns follow each other, then the next columns.
    const std::int64_t depth = block_depth(w.dtype);
    const std::int64_t inner = depth * block_columns;
    const std::int64_t padded_k = (w.rows + depth - 1) / depth * depth;
    const std::int64_t padded_n = (w.cols + block_columns - 1) / block_columns * block_columns;
    const bool in_order = blocking.strides[0] == inner && blocking.strides[1] == padded_k * block_columns;
    const bool padded = blocking.padded[0] == padded_k && blocking.padded[1] == padded_n;
    return in_order && padded ? Packing::blocks : Packing::other;
}

}  // namespace shardplan::kernels::onednn
