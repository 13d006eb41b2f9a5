// Shapes: sizes of the dimensions, slowest first (row-major).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checked.h"
#include "tensor/dtype.h"

namespace shardplan::tensor {

using Shape = std::vector<std::int64_t>;

/// Product of the sizes; 1 for a scalar. Throws base::OverflowError.
inline std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) {
        count = base::checked_mul(count, size);
    }
    return count;
}

inline std::int64_t byte_count(const Shape& shape, DType dtype) {
    return base::checked_mul(element_count(shape), size_of(dtype));
}

/// "[4, 128]"
std::string to_string(const Shape& shape);

}  // namespace shardplan::tensor
