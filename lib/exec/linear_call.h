// One product of an activation with the weights of one step: an optional norm first, one matrix product for all parts
// when they were prepared as one, biases last.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace shardplan::exec {

struct LinearCall {
    struct Part {
        kernels::ConstView weight;  ///< without data when prepared
        kernels::ConstView bias;    ///< absent: no dimensions
        kernels::View y;
    };
    const kernels::Kernels& kernels;
    std::span<std::byte> scratch;  ///< room for the normalised input and the joint output, as the plan gives it
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
