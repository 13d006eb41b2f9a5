// Non-owning views of dense row-major buffers: what kernels and communicators work on.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shardplan::tensor {

struct ConstView {
    const std::byte* data = nullptr;
    DType dtype = DType::f32;
    Shape shape;

    std::int64_t count() const { return element_count(shape); }
    std::int64_t bytes() const { return byte_count(shape, dtype); }
    template <typename T>
    const T* as() const {
        return reinterpret_cast<const T*>(data);
    }
};

struct View {
    std::byte* data = nullptr;
    DType dtype = DType::f32;
    Shape shape;

    std::int64_t count() const { return element_count(shape); }
    std::int64_t bytes() const { return byte_count(shape, dtype); }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(data);
    }
    operator ConstView() const { return {data, dtype, shape}; }  // NOLINT: a view is a const view
};

}  // namespace shardplan::tensor
