#include "plan/totals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"
#include "plan/pipeline.h"

namespace shardplan::plan {

using base::checked_add;
using base::checked_mul;

std::int64_t instances(const BlockPlan& block) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(block.layers.size()));
}

namespace {

using TotalKey = std::pair<mesh::CollectiveKind, std::vector<std::string>>;

void add_sends(const Plan& plan, std::map<TotalKey, CollectiveTotal>& totals) {
    if (!plan.pipeline_axis || plan.stages.size() == 1) {
        return;
    }
    CollectiveTotal total;
    total.kind = mesh::CollectiveKind::send;
    total.axes = {plan.mesh.refined().name(*plan.pipeline_axis)};
    for (const Stage& stage : plan.stages) {
        total.count += stage.sent_bytes > 0 ? 1 : 0;
        total.payload_bytes = std::max(total.payload_bytes, stage.sent_bytes);
        total.wire_bytes_total =
            checked_add(total.wire_bytes_total, checked_mul(stage.sent_bytes, stage_devices(plan)));
    }
    total.wire_bytes = total.payload_bytes;
    totals[{total.kind, total.axes}] = total;
}

}  // namespace

std::vector<CollectiveTotal> collective_totals(const Plan& plan) {
    std::map<TotalKey, CollectiveTotal> totals;
    const auto stages = static_cast<std::int64_t>(plan.stages.size());
    for (const BlockPlan& block : plan.blocks) {
        for (const Step& step : block.steps) {
            const std::int64_t times = checked_mul(instances(block), step.times);
            if (!step.collective || step.collective->kind == mesh::CollectiveKind::slice) {
                continue;
            }
            const CollectiveStep& collective = *step.collective;
            CollectiveTotal& total = totals[{collective.kind, collective.names}];
            total.kind = collective.kind;
            total.axes = collective.names;
            total.count += times;
            total.payload_bytes = checked_add(total.payload_bytes, checked_mul(times, collective.payload_bytes));
            total.wire_bytes = checked_add(total.wire_bytes, checked_mul(times, collective.wire_bytes));
            total.wire_bytes_total =
                checked_add(total.wire_bytes_total, checked_mul(times, collective.wire_bytes_total / stages));
            total.worst_wire_bytes_total = checked_add(total.worst_wire_bytes_total,
                                                       checked_mul(times, collective.worst_wire_bytes_total / stages));
        }
    }
    add_sends(plan, totals);
    std::vector<CollectiveTotal> result;
    for (auto& [key, total] : totals) {
        result.push_back(std::move(total));
    }
    return result;
}

Totals model_totals(const Plan& plan) {
    Totals totals;
    std::int64_t unsharded = 0;
    for (const StoredTensor& stored : plan.stored) {
        if (stored.kind != StoredKind::parameter) {
            continue;
        }
        const auto count = static_cast<std::int64_t>(stored.layers.size());
        const model::Parameter& parameter = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)];
        const std::int64_t elements =
            checked_mul(count, tensor::element_count(model::without_padding(parameter).shape));
        totals.parameters = checked_add(totals.parameters, elements);
        totals.parameter_bytes =
            checked_add(totals.parameter_bytes, checked_mul(elements, tensor::size_of(stored.dtype)));
        if (stored.dtype == tensor::DType::i8) {
            const std::int64_t outputs = model::without_padding(parameter).shape[parameter.transposed ? 1 : 0];
            totals.parameter_bytes = checked_add(
                totals.parameter_bytes, checked_mul(count, checked_mul(outputs, tensor::size_of(tensor::DType::f32))));
        }
        if (partition::shard_count(stored.layout, plan.mesh.refined()) == 1) {
            unsharded = checked_add(unsharded, elements);
        }
    }
    totals.unsharded_fraction =
        totals.parameters == 0 ? 0.0 : static_cast<double>(unsharded) / static_cast<double>(totals.parameters);
    for (const Stage& stage : plan.stages) {
        totals.flops_per_device = std::max(totals.flops_per_device, stage.flops_per_device);
    }
    return totals;
}

}  // namespace shardplan::plan
