// Loops over one row of values that change its type. Part of tiles.cpp.
#pragma once

#include <cstdint>

#include "kernels/reference/lanes.h"

namespace shardplan::kernels {

template <int lanes>
SHARDPLAN_INLINE void widen_body(const std::uint16_t* from, std::int64_t count, float* to) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        typename Lane<lanes>::Float x;
        load<lanes>(x, from + i);
        std::memcpy(to + i, &x, sizeof(x));
    }
    for (; i < count; ++i) {
        to[i] = to_float(from[i]);
    }
}

/// As tensor::bf16_from_float.
template <int lanes>
SHARDPLAN_INLINE void narrow_body(const float* from, std::int64_t count, std::uint16_t* to) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        typename Lane<lanes>::Float x;
        load<lanes>(x, from + i);
        store<lanes>(to + i, x);
    }
    for (; i < count; ++i) {
        to[i] = tensor::bf16_from_float(from[i]);
    }
}

}  // namespace shardplan::kernels
