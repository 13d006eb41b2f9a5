// Recognises the layout of packed weights from what oneDNN says of it, in the terms that both of its major versions
// use.
#pragma once

#include <cstdint>

#include "kernels/onednn/api.h"

namespace shardplan::kernels::onednn {

/// A blocked layout of a matrix [K, N]; pointers are borrowed.
struct Blocking {
    std::int64_t inner_count = 0;              ///< of inner blocks, the outermost first
    const std::int64_t* sizes = nullptr;       ///< [inner_count]
    const std::int64_t* dimensions = nullptr;  ///< [inner_count], 0: K, 1: N
    const std::int64_t* strides = nullptr;     ///< [2] between blocks
    const std::int64_t* padded = nullptr;      ///< [2] K and N, padding included
    std::int64_t offset = 0;                   ///< of the first element
};

Packing packing_of(const Blocking& blocking, const MatrixDesc& w);

}  // namespace shardplan::kernels::onednn
