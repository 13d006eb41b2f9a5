#include "plan/step_work.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "plan/pipeline.h"

namespace shardplan::plan {
namespace {

bool looks_up_rows(model::OpKind kind) {
    return kind == model::OpKind::embedding || kind == model::OpKind::position_embedding;
}

bool has_experts(const model::Graph& graph) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [](const model::Block& block) {
        return std::any_of(block.ops.begin(), block.ops.end(),
                           [](const model::Op& op) { return op.kind == model::OpKind::experts; });
    });
}

/// Of each parameter of the graph: whether some op reads all of it.
std::vector<bool> read_whole(const model::Graph& graph) {
    std::vector<bool> result(graph.parameters.size());
    for (const model::Block& block : graph.blocks) {
        for (const model::Op& op : block.ops) {
            for (const model::TensorId input : op.inputs) {
                const model::TensorInfo& tensor = block.tensors[static_cast<std::size_t>(input)];
                if (tensor.kind == model::TensorKind::parameter && !looks_up_rows(op.kind)) {
                    result[static_cast<std::size_t>(tensor.parameter)] = true;
                }
            }
        }
    }
    return result;
}

/// Of a device, in every layer that the tensor belongs to.
std::int64_t read_bytes(const Plan& plan, const StoredTensor& stored) {
    const std::int64_t bytes = base::checked_mul(stored.bytes_per_device, std::ssize(stored.layers));
    if (stored.kind != StoredKind::cache) {
        return bytes;
    }
    const model::Workload& workload = plan.graph.workload;
    if (workload.mode != model::Mode::decode) {
        return 0;
    }
    const std::int64_t rows = stored.shape[1];
    return bytes / rows * std::min(rows, workload.sequence_length + workload.query_length());
}

}  // namespace

StepWork step_work(const Plan& plan) {
    StepWork work;
    const std::int64_t devices = stage_devices(plan);
    for (const Stage& stage : plan.stages) {
        work.flops += stage.flops_per_device * static_cast<double>(devices * plan.graph.workload.micro_batches);
    }
    if (has_experts(plan.graph)) {
        return work;
    }
    const std::vector<bool> whole = read_whole(plan.graph);
    for (const StoredTensor& stored : plan.stored) {
        if (stored.kind == StoredKind::cache || whole[static_cast<std::size_t>(stored.parameter)]) {
            work.bytes = base::checked_add(work.bytes, base::checked_mul(devices, read_bytes(plan, stored)));
        }
    }
    return work;
}

}  // namespace shardplan::plan
