#include "exec/use_table.h"

#include <algorithm>

namespace shardplan::exec {

using plan::ValueId;
using plan::ValueKind;

std::vector<tensor::View> views_of(const plan::BlockPlan& block) {
    std::vector<tensor::View> views;
    for (const plan::Value& value : block.values) {
        views.push_back({nullptr, value.dtype, value.local_shape});
    }
    return views;
}

UseTable make_use_table(const plan::Plan& plan, const Schedule& schedule, const ParameterStore& parameters,
                        const std::vector<std::vector<Buffer>>& caches, const model::BlockUse& use) {
    const plan::BlockPlan& block = plan.blocks[static_cast<std::size_t>(use.block)];
    UseTable table;
    for (std::size_t v = 0; v < block.values.size(); ++v) {
        const plan::Value& value = block.values[v];
        const auto id = static_cast<ValueId>(v);
        if (value.kind == ValueKind::parameter) {
            table.stored.emplace_back(id, const_cast<std::byte*>(parameters.plain(value.stored, use.layer).data));
        } else if (value.kind == ValueKind::cache) {
            const std::vector<int>& layers = plan.stored[static_cast<std::size_t>(value.stored)].layers;
            const auto index = std::find(layers.begin(), layers.end(), use.layer) - layers.begin();
            const std::vector<Buffer>& instances = caches[static_cast<std::size_t>(value.stored)];
            table.stored.emplace_back(id, instances.at(static_cast<std::size_t>(index)).data());
        }
    }
    for (const StepSchedule& step : schedule.blocks[static_cast<std::size_t>(use.block)].steps) {
        table.prepared.push_back(step.linear ? parameters.prepared(block, *step.linear, use.layer)
                                             : std::vector<const kernels::Weight*>{});
    }
    return table;
}

}  // namespace shardplan::exec
