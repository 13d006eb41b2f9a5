// Runs one compute step on the local shapes of a rank: from op attributes and index ranges to a call of the kernels.
// Owns nothing; all positions, head numbers and table rows follow from the ranges that the rank holds.
#pragma once

#include <cstddef>
#include <span>

#include "exec/schedule.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

namespace shardplan::exec {

/// One block while it runs.
struct BlockScene {
    const plan::Plan& plan;
    const plan::BlockPlan& block;
    const model::Block& graph;
    const BlockSchedule& schedule;
    int layer = -1;
    std::int64_t rank = 0;
    std::int64_t pass = 0;  ///< of the loop that the step is in
    const kernels::Kernels& kernels;
    std::span<const kernels::Weight* const> prepared;  ///< of a linear's parts, where its weights are kept so
    std::span<std::byte> scratch;                      ///< of the step
    std::span<const std::int64_t> first_positions;     ///< per sequence of the whole batch: position of its first token
    std::span<const tensor::View> views;               ///< per value; those that are not live have no data

    const tensor::View& view(plan::ValueId value) const { return views[static_cast<std::size_t>(value)]; }
    base::Interval range(plan::ValueId value, std::size_t dim) const {
        return schedule.ranges[static_cast<std::size_t>(value)][dim];
    }
};

/// The outputs are allocated. Throws std::logic_error for steps it does not understand.
void run_compute(const BlockScene& scene, const plan::ComputeStep& step, const StepSchedule& schedule);

/// The kernel of an op's activation. Throws std::logic_error when there is none.
kernels::Activation activation_of(const model::Op& op);

}  // namespace shardplan::exec
