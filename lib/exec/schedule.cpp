#include "exec/schedule.h"

#include "exec/expert_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace shardplan::exec {
namespace {

using plan::ValueId;
using plan::ValueKind;

std::vector<base::Interval> ranges_of(const plan::Value& value, const mesh::Mesh& mesh, std::int64_t rank) {
    std::vector<base::Interval> ranges = partition::local_ranges(value.layout, value.shape, mesh, rank);
    tensor::Shape local;
    for (const base::Interval range : ranges) {
        local.push_back(range.size());
    }
    if (local != value.local_shape) {
        throw std::logic_error(fmt::format("{}: the plan says local shape {}, its layout gives {}", value.name,
                                           tensor::to_string(value.local_shape), tensor::to_string(local)));
    }
    return ranges;
}

std::vector<ValueId> owners_of(const plan::BlockPlan& block) {
    std::vector<ValueId> owners;
    for (std::size_t v = 0; v < block.values.size(); ++v) {
        ValueId owner = static_cast<ValueId>(v);
        while (block.values[static_cast<std::size_t>(owner)].alias_of >= 0) {
            owner = block.values[static_cast<std::size_t>(owner)].alias_of;
        }
        owners.push_back(owner);
    }
    return owners;
}

bool has_memory(const plan::Value& value) {
    return value.kind != ValueKind::parameter && value.kind != ValueKind::cache;
}

/// Memory is free when the last of the values that share it has had its last use.
void schedule_releases(const plan::BlockPlan& block, BlockSchedule& schedule) {
    std::vector<int> last(block.values.size(), -1);
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
        for (const ValueId value : block.steps[s].last_use) {
            last[static_cast<std::size_t>(schedule.owner[static_cast<std::size_t>(value)])] = static_cast<int>(s);
        }
    }
    if (block.output >= 0) {
        last[static_cast<std::size_t>(schedule.owner[static_cast<std::size_t>(block.output)])] = -1;
    }
    for (std::size_t v = 0; v < block.values.size(); ++v) {
        if (last[v] >= 0 && has_memory(block.values[v])) {
            schedule.steps[static_cast<std::size_t>(last[v])].release.push_back(static_cast<ValueId>(v));
        }
    }
}

std::size_t timer_of(const plan::Step& step, const model::Block& graph, std::vector<Timer>& timers) {
    Timer timer;
    if (step.joined != 0 && step.collective) {
        timer = {"reduce-scatter + norm + all-gather", true};
    } else if (step.collective) {
        timer = {std::string(mesh::to_string(step.collective->kind)), true};
    } else if (step.compute->kind == plan::ComputeKind::op) {
        const model::Op& op = graph.ops[static_cast<std::size_t>(step.compute->op)];
        timer = {std::string(model::to_string(op.kind)), false};
    } else {
        timer = {std::string(plan::to_string(step.compute->kind)), false};
    }
    const auto found = std::find(timers.begin(), timers.end(), timer);
    if (found != timers.end()) {
        return static_cast<std::size_t>(found - timers.begin());
    }
    timers.push_back(std::move(timer));
    return timers.size() - 1;
}

void schedule_step(const plan::BlockPlan& block, const plan::Step& step, StepSchedule& schedule) {
    for (const ValueId output : plan::defined_values(step)) {
        const plan::Value& value = block.values[static_cast<std::size_t>(output)];
        if (value.alias_of < 0 && has_memory(value)) {
            schedule.allocate.push_back(output);
        }
    }
}

BlockSchedule schedule_block(const plan::Plan& plan, std::size_t b, std::int64_t rank, std::vector<Timer>& timers) {
    const plan::BlockPlan& block = plan.blocks[b];
    const model::Block& graph = plan.graph.blocks[static_cast<std::size_t>(block.block)];
    BlockSchedule schedule;
    schedule.owner = owners_of(block);
    for (std::size_t v = 0; v < block.values.size(); ++v) {
        const plan::Value& value = block.values[v];
        schedule.ranges.push_back(ranges_of(value, plan.mesh.refined(), rank));
        if (value.kind == ValueKind::input && static_cast<ValueId>(v) != block.input) {
            schedule.token_inputs.push_back(static_cast<ValueId>(v));
        }
    }
    for (const plan::Step& step : block.steps) {
        StepSchedule& entry = schedule.steps.emplace_back();
        entry.timer = timer_of(step, graph, timers);
        schedule_step(block, step, entry);
        if (step.compute) {
            entry.linear = read_linear_step(block, graph, *step.compute);
            entry.experts = experts_of_members(plan, graph, *step.compute, rank);
        }
    }
    schedule_releases(block, schedule);
    return schedule;
}

}  // namespace

Schedule make_schedule(const plan::Plan& plan, std::int64_t rank) {
    Schedule schedule;
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
        schedule.blocks.push_back(schedule_block(plan, b, rank, schedule.timers));
    }
    if (plan.stages.size() > 1) {
        schedule.receive_timer = schedule.timers.size();
        schedule.timers.push_back({"receive", true});
        schedule.send_timer = schedule.timers.size();
        schedule.timers.push_back({"send", true});
    }
    return schedule;
}

}  // namespace shardplan::exec
