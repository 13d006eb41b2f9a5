// Reading and writing runs of elements as float, whatever their dtype: the only place where kernels look at bf16 bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/reference/tiles.h"
#include "tensor/view.h"

namespace shardplan::kernels {

/// out[0..n) = elements [begin, begin + n) of x (f32 or bf16).
inline void load_floats(const tensor::ConstView& x, std::int64_t begin, std::int64_t n, float* out) {
    if (n == 0) {
        return;  // data may be null
    }
    if (x.dtype == tensor::DType::f32) {
        std::memcpy(out, x.as<float>() + begin, static_cast<std::size_t>(n) * sizeof(float));
        return;
    }
    tile_functions().widen(x.as<std::uint16_t>() + begin, n, out);
}

/// The opposite; bf16 is rounded to nearest even.
inline void store_floats(const float* values, std::int64_t n, const tensor::View& y, std::int64_t begin) {
    if (n == 0) {
        return;
    }
    if (y.dtype == tensor::DType::f32) {
        std::memcpy(y.as<float>() + begin, values, static_cast<std::size_t>(n) * sizeof(float));
        return;
    }
    tile_functions().narrow(values, n, y.as<std::uint16_t>() + begin);
}

}  // namespace shardplan::kernels
