// One product of an activation with the weights of one step: an optional norm first, once for all parts, biases last.
// Each part is written where it belongs.
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
    std::span<std::byte> scratch;  ///< room for the normalised input, as the plan gives it
    kernels::ConstView x;
    std::optional<kernels::NormParams> norm;
    kernels::ConstView norm_weight;
    kernels::ConstView norm_bias;
    std::span<const kernels::Weight* const> prepared;  ///< per part; empty where they are plain
    bool transposed = false;
    std::vector<Part> parts;
};

void call_linear(const LinearCall& call);

}  // namespace shardplan::exec
