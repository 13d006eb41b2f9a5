#include "plan/totals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"

namespace shardplan::plan {

using base::checked_add;
using base::checked_mul;

std::int64_t instances(const BlockPlan& block) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(block.layers.size()));
}

std::vector<CollectiveTotal> collective_totals(const Plan& plan) {
    std::map<std::pair<mesh::CollectiveKind, std::vector<std::string>>, CollectiveTotal> totals;
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
                checked_add(total.wire_bytes_total, checked_mul(times, collective.wire_bytes_total));
        }
    }
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
        const std::int64_t elements = checked_mul(count, tensor::element_count(stored.shape));
        totals.parameters = checked_add(totals.parameters, elements);
        totals.parameter_bytes = checked_add(totals.parameter_bytes, checked_mul(count, stored.bytes));
        if (partition::shard_count(stored.layout, plan.mesh.refined()) == 1) {
            unsharded = checked_add(unsharded, elements);
        }
    }
    totals.unsharded_fraction =
        totals.parameters == 0 ? 0.0 : static_cast<double>(unsharded) / static_cast<double>(totals.parameters);
    for (const BlockPlan& block : plan.blocks) {
        for (const Step& step : block.steps) {
            if (step.compute) {
                totals.flops_per_device +=
                    step.compute->flops * static_cast<double>(step.times) * static_cast<double>(instances(block));
            }
        }
    }
    return totals;
}

}  // namespace shardplan::plan
