// Reads a compute step as a product with one or several weight matrices: a plain linear, or a fused one with the norm
// before it and several outputs.
#pragma once

#include <optional>
#include <vector>

#include "plan/plan.h"

namespace shardplan::exec {

struct LinearPart {
    plan::ValueId weight = -1;
    plan::ValueId bias = -1;  ///< -1 = none
    plan::ValueId output = -1;
};

struct LinearStep {
    plan::ValueId x = -1;
    const model::Op* norm = nullptr;  ///< of the fused norm; null = none
    plan::ValueId norm_weight = -1;   ///< -1 = none
    plan::ValueId norm_bias = -1;
    bool transposed = false;  ///< weights are [in, out]
    std::vector<LinearPart> parts;
};

/// nullopt for steps that are no linear. Throws std::logic_error when the step contradicts itself.
std::optional<LinearStep> read_linear_step(const plan::BlockPlan& block, const model::Block& graph,
                                           const plan::ComputeStep& step);

}  // namespace shardplan::exec
