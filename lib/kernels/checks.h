// Argument checks shared by the kernels. Every failure throws std::invalid_argument("<kernel>: <what and which
// values>").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/view.h"

namespace shardplan::kernels {

[[noreturn]] void reject(std::string_view kernel, const std::string& why);

void check_shape(std::string_view kernel, std::string_view name, const tensor::Shape& shape,
                 const tensor::Shape& wanted);
void check_rank(std::string_view kernel, std::string_view name, const tensor::Shape& shape, std::size_t rank);
void check_dtype(std::string_view kernel, std::string_view name, tensor::DType dtype, tensor::DType wanted);
/// f32 or bf16.
void check_float(std::string_view kernel, std::string_view name, tensor::DType dtype);
void check_length(std::string_view kernel, std::string_view name, std::size_t length, std::int64_t wanted);

/// Two float tensors into a third, all of one shape.
void check_elementwise(std::string_view kernel, const tensor::ConstView& a, const tensor::ConstView& b,
                       const tensor::View& y);

/// A view that stands for "no such tensor".
inline bool absent(const tensor::ConstView& view) {
    return view.shape.empty();
}

/// Product of all dimensions but the last. @pre at least one dimension
inline std::int64_t leading_count(const tensor::Shape& shape) {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
        count *= shape[i];
    }
    return count;
}

}  // namespace shardplan::kernels
