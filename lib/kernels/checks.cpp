#include "kernels/checks.h"

#include <fmt/format.h>

#include <stdexcept>

namespace shardplan::kernels {

void reject(std::string_view kernel, const std::string& why) {
    throw std::invalid_argument(fmt::format("{}: {}", kernel, why));
}

void check_shape(std::string_view kernel, std::string_view name, const tensor::Shape& shape,
                 const tensor::Shape& wanted) {
    if (shape != wanted) {
        reject(kernel,
               fmt::format("{} has shape {}, must be {}", name, tensor::to_string(shape), tensor::to_string(wanted)));
    }
}

void check_rank(std::string_view kernel, std::string_view name, const tensor::Shape& shape, std::size_t rank) {
    if (shape.size() != rank) {
        reject(kernel, fmt::format("{} has shape {}, must have {} dimensions", name, tensor::to_string(shape), rank));
    }
}

void check_dtype(std::string_view kernel, std::string_view name, tensor::DType dtype, tensor::DType wanted) {
    if (dtype != wanted) {
        reject(kernel, fmt::format("{} is {}, must be {}", name, to_string(dtype), tensor::to_string(wanted)));
    }
}

void check_float(std::string_view kernel, std::string_view name, tensor::DType dtype) {
    if (dtype != tensor::DType::f32 && dtype != tensor::DType::bf16) {
        reject(kernel, fmt::format("{} is {}, must be f32 or bf16", name, to_string(dtype)));
    }
}

void check_elementwise(std::string_view kernel, const tensor::ConstView& a, const tensor::ConstView& b,
                       const tensor::View& y) {
    check_float(kernel, "a", a.dtype);
    check_float(kernel, "b", b.dtype);
    check_float(kernel, "y", y.dtype);
    check_shape(kernel, "b", b.shape, a.shape);
    check_shape(kernel, "y", y.shape, a.shape);
}

void check_length(std::string_view kernel, std::string_view name, std::size_t length, std::int64_t wanted) {
    if (static_cast<std::int64_t>(length) != wanted) {
        reject(kernel, fmt::format("{} has {} values, must have {}", name, length, wanted));
    }
}

}  // namespace shardplan::kernels
