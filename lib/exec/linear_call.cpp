#include "exec/linear_call.h"

#include <stdexcept>

namespace shardplan::exec {
namespace {

using kernels::ConstView;
using kernels::View;

void multiply_prepared(const LinearCall& call, const ConstView& x) {
    if (call.parts.size() == 1) {
        return call.kernels.matmul(x, *call.prepared.front(), call.parts.front().y);
    }
    std::vector<View> ys;
    for (const LinearCall::Part& part : call.parts) {
        ys.push_back(part.y);
    }
    call.kernels.matmul_parts(x, call.prepared, ys);
}

void multiply(const LinearCall& call, const ConstView& x) {
    const auto order = call.transposed ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in;
    if (!call.prepared.empty()) {
        multiply_prepared(call, x);
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
        return multiply(call, call.x);
    }
    const View normed{call.scratch.data(), call.x.dtype, call.x.shape};
    if (normed.bytes() > std::ssize(call.scratch)) {
        throw std::logic_error("the plan gives a linear too little scratch memory");
    }
    call.kernels.norm(call.x, call.norm_weight, call.norm_bias, *call.norm, normed);
    multiply(call, normed);
}

}  // namespace shardplan::exec
