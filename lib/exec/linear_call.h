// One product of an activation with the weights of one step: an optional norm first, one matrix product for all parts
// when they were prepared as one, biases last.
#pragma once

#include <optional>
#include <vector>

#include "exec/buffer.h"
#include "kernels/kernels.h"

namespace shardplan::exec {

struct LinearCall {
    struct Part {
        kernels::ConstView weight;  ///< without data when prepared
        kernels::ConstView bias;    ///< absent: no dimensions
        kernels::View y;
    };
    const kernels::Kernels& kernels;
    Allocator& allocator;  ///< the normalised input and the joint output are scratch
    kernels::ConstView x;
    std::optional<kernels::NormParams> norm;
    kernels::ConstView norm_weight;
    kernels::ConstView norm_bias;
    const kernels::Weight* prepared = nullptr;  ///< of all parts, outputs one behind the other
    bool transposed = false;
    std::vector<Part> parts;
};

void call_linear(const LinearCall& call);

}  // namespace shardplan::exec
