#include "plan/join.h"

#include <algorithm>
#include <string>

namespace shardplan::plan {
namespace {

using mesh::CollectiveKind;

bool is_collective(const Step& step, CollectiveKind kind) {
    return step.collective && step.collective->kind == kind && step.loop == 0;
}

/// What may stand between the two collectives: each token for itself.
bool is_local_work(const Step& step, const model::Block& graph) {
    if (!step.compute || step.compute->kind != ComputeKind::op || step.loop != 0) {
        return false;
    }
    const model::OpKind kind = graph.ops[static_cast<std::size_t>(step.compute->op)].kind;
    return kind == model::OpKind::add || kind == model::OpKind::norm || kind == model::OpKind::scale;
}

/// The all-gather that ends what the reduce-scatter at `first` begins; `first` itself where there is none.
std::size_t find_end(const BlockPlan& block, const model::Block& graph, std::size_t first) {
    std::size_t last = first + 1;
    bool reads_sum = false;
    bool norm = false;
    for (; last < block.steps.size() && is_local_work(block.steps[last], graph); ++last) {
        const ComputeStep& step = *block.steps[last].compute;
        const ValueId sum = block.steps[first].collective->output;
        reads_sum = reads_sum || std::find(step.inputs.begin(), step.inputs.end(), sum) != step.inputs.end();
        norm = norm || graph.ops[static_cast<std::size_t>(step.op)].kind == model::OpKind::norm;
    }
    if (!reads_sum || !norm || last == block.steps.size() ||
        !is_collective(block.steps[last], CollectiveKind::all_gather)) {
        return first;
    }
    const CollectiveStep& scatter = *block.steps[first].collective;
    const CollectiveStep& gather = *block.steps[last].collective;
    const bool from_between = gather.input == block.steps[last - 1].compute->outputs.front();
    return from_between && gather.axes == scatter.axes && gather.dim == scatter.dim ? last : first;
}

/// The sum is that of a row-parallel linear of the provider.
bool follows_row_linear(const BlockPlan& block, const backend::BackendSpecProvider& provider, std::size_t first) {
    return first > 0 && block.steps[first - 1].compute &&
           block.steps[first - 1].compute->module == provider.row_parallel_linear() &&
           block.steps[first - 1].compute->outputs.front() == block.steps[first].collective->input;
}

}  // namespace

void join_steps(BlockPlan& block, const model::Block& graph, const backend::BackendSpecProvider& provider) {
    if (provider.kind() != backend::ProviderKind::inference) {
        return;
    }
    int joined = 0;
    for (std::size_t first = 0; first < block.steps.size(); ++first) {
        if (!is_collective(block.steps[first], CollectiveKind::reduce_scatter) ||
            !follows_row_linear(block, provider, first)) {
            continue;
        }
        const std::size_t last = find_end(block, graph, first);
        if (last == first) {
            continue;
        }
        ++joined;
        for (std::size_t i = first; i <= last; ++i) {
            block.steps[i].joined = joined;
            if (block.steps[i].compute) {
                block.steps[i].compute->module = std::string(provider.row_parallel_linear());
            }
        }
        std::int64_t& staging = block.steps[first].collective->staging_bytes;
        staging = std::max(staging, block.steps[last].collective->staging_bytes);
        block.steps[last].collective->staging_bytes = 0;
        first = last;
    }
}

}  // namespace shardplan::plan
