// Steps of mixtures of experts: routing, the experts themselves, and sending tokens to them and back.
#pragma once

#include <vector>

#include "exec/compute.h"

namespace shardplan::exec {

void run_route(const BlockScene& scene, const plan::ComputeStep& step, const model::Op& op);

/// Of the op experts: all tokens at hand, with the experts whose weights the rank holds.
void run_experts(const BlockScene& scene, const plan::ComputeStep& step, const model::Op& op);
/// The same on the rows that were received, as many as the counts say.
void run_dispatched_experts(const BlockScene& scene, const plan::ComputeStep& step, const model::Op& op);

void run_dispatch_tokens(const BlockScene& scene, const plan::ComputeStep& step, const StepSchedule& schedule);
void run_combine_tokens(const BlockScene& scene, const plan::ComputeStep& step);

/// dispatch_tokens: the experts of each member of the group of `rank`, in order of position; empty for other steps.
std::vector<base::Interval> experts_of_members(const plan::Plan& plan, const model::Block& graph,
                                               const plan::ComputeStep& step, std::int64_t rank);

}  // namespace shardplan::exec
