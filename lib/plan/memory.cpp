#include "plan/memory.h"

#include <algorithm>

#include "base/checked.h"
#include "plan/arena.h"

namespace shardplan::plan {
namespace {

bool has_memory(const Value& value) {
    return value.alias_of < 0 && value.kind != ValueKind::parameter && value.kind != ValueKind::cache;
}

struct Live {
    std::int64_t activation = 0;
    std::int64_t communication = 0;

    void add(const Value& value, std::int64_t sign) {
        std::int64_t& slot = value.kind == ValueKind::gathered ? communication : activation;
        slot = base::checked_add(slot, sign * value.local_bytes);
    }
};

}  // namespace

std::vector<std::size_t> last_steps(const BlockPlan& block) {
    std::vector<std::size_t> last(block.values.size(), never);
    const auto touch = [&](ValueId id, std::size_t step) {
        last[static_cast<std::size_t>(memory_owner(block, id))] = step;
    };
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const Step& step = block.steps[i];
        std::size_t end = i;  // steps that are executed as one free their memory together
        while (step.joined != 0 && end + 1 < block.steps.size() && block.steps[end + 1].joined == step.joined) {
            ++end;
        }
        if (step.compute) {
            for (const ValueId id : step.compute->inputs) {
                touch(id, end);
            }
        } else {
            touch(step.collective->input, end);
            for (const ValueId counts : {step.collective->send_counts, step.collective->receive_counts}) {
                if (counts >= 0) {
                    touch(counts, end);
                }
            }
        }
        for (const ValueId id : defined_values(step)) {
            touch(id, end);
        }
    }
    touch(block.output, block.steps.size());
    return last;
}

void schedule_memory(BlockPlan& block) {
    const std::vector<std::size_t> last = last_steps(block);
    Live live;
    for (std::size_t id = 0; id < block.values.size(); ++id) {
        const Value& value = block.values[id];
        if (value.kind == ValueKind::input) {
            live.add(value, 1);
        }
        if (has_memory(value) && last[id] < block.steps.size()) {
            block.steps[last[id]].last_use.push_back(static_cast<ValueId>(id));
        }
    }
    block.peak_activation_bytes = live.activation;
    block.peak_communication_bytes = 0;
    for (const Step& step : block.steps) {
        for (const ValueId id : defined_values(step)) {
            const Value& value = block.values[static_cast<std::size_t>(id)];
            if (has_memory(value)) {
                live.add(value, 1);
            }
        }
        const std::int64_t staging = step.collective ? step.collective->staging_bytes : 0;
        block.peak_activation_bytes = std::max(block.peak_activation_bytes, live.activation);
        block.peak_communication_bytes =
            std::max(block.peak_communication_bytes, base::checked_add(live.communication, staging));
        for (const ValueId id : step.last_use) {
            live.add(block.values[static_cast<std::size_t>(id)], -1);
        }
    }
    lay_out_arena(block);
}

MemoryPerDevice memory_per_device(const Plan& plan) {
    const auto least = [](const Stage& a, const Stage& b) { return a.memory.total() < b.memory.total(); };
    return std::max_element(plan.stages.begin(), plan.stages.end(), least)->memory;
}

}  // namespace shardplan::plan
