#include "exec/linear_call.h"

#include <cstring>
#include <stdexcept>

#include "plan/arena.h"

namespace shardplan::exec {
namespace {

using kernels::ConstView;
using kernels::View;

std::int64_t row_count(const tensor::Shape& shape) {
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) {
        rows *= shape[d];
    }
    return rows;
}

/// Columns [first, first + N) of joint [rows, *] -> y [..., N].
void take_columns(const View& joint, std::int64_t first, const View& y) {
    const std::int64_t rows = joint.shape[0];
    const std::int64_t from = joint.shape[1] * tensor::size_of(joint.dtype);
    const std::int64_t to = y.shape.back() * tensor::size_of(y.dtype);
    const std::byte* source = joint.data + first * tensor::size_of(joint.dtype);
#pragma omp parallel for schedule(static) if (rows >= 16)
    for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(y.data + row * to, source + row * from, static_cast<std::size_t>(to));
    }
}

/// Takes room for a tensor from the front of the scratch memory.
View take_scratch(std::span<std::byte>& scratch, tensor::DType dtype, tensor::Shape shape) {
    const auto bytes = static_cast<std::size_t>(plan::arena_size(tensor::byte_count(shape, dtype)));
    if (bytes > scratch.size()) {
        throw std::logic_error("the plan gives a linear too little scratch memory");
    }
    std::byte* data = scratch.data();
    scratch = scratch.subspan(bytes);
    return {data, dtype, std::move(shape)};
}

void multiply_prepared(const LinearCall& call, const ConstView& x, std::span<std::byte> scratch) {
    if (call.parts.size() == 1) {
        return call.kernels.matmul(x, *call.prepared, call.parts.front().y);
    }
    const std::int64_t rows = row_count(x.shape);
    const tensor::DType dtype = call.parts.front().y.dtype;
    const View joint = take_scratch(scratch, dtype, {rows, call.prepared->outputs()});
    call.kernels.matmul({x.data, x.dtype, {rows, x.shape.back()}}, *call.prepared, joint);
    std::int64_t first = 0;
    for (const LinearCall::Part& part : call.parts) {
        take_columns(joint, first, part.y);
        first += part.y.shape.back();
    }
}

void multiply(const LinearCall& call, const ConstView& x, std::span<std::byte> scratch) {
    const auto order = call.transposed ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in;
    if (call.prepared != nullptr) {
        multiply_prepared(call, x, scratch);
    } else {
        for (const LinearCall::Part& part : call.parts) {
            call.kernels.matmul_plain(x, part.weight, order, part.y);
        }
    }
    for (const LinearCall::Part& part : call.parts) {
        if (!part.bias.shape.empty()) {
            call.kernels.add_bias(part.y, part.bias, part.y);
        }
    }
}

}  // namespace

void call_linear(const LinearCall& call) {
    if (!call.norm) {
        return multiply(call, call.x, call.scratch);
    }
    std::span<std::byte> scratch = call.scratch;
    const View normed = take_scratch(scratch, call.x.dtype, call.x.shape);
    call.kernels.norm(call.x, call.norm_weight, call.norm_bias, *call.norm, normed);
    multiply(call, normed, scratch);
}

}  // namespace shardplan::exec
