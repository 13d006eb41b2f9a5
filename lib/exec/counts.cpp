#include "exec/counts.h"

#include <array>

#include "base/checked.h"
#include "plan/pipeline.h"

namespace shardplan::exec {

using base::checked_add;
using base::checked_mul;

std::vector<TrafficCount> predicted_traffic(const plan::Plan& plan, std::int64_t steps) {
    std::vector<TrafficCount> rows(comm::collective_kinds);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        rows[k].kind = static_cast<mesh::CollectiveKind>(k);
    }
    const std::int64_t devices = plan::stage_devices(plan);  // a use of a block runs in one stage
    const auto stages = static_cast<std::int64_t>(plan.stages.size());
    for (const model::BlockUse& use : plan.sequence) {
        for (const plan::Step& step : plan.blocks[static_cast<std::size_t>(use.block)].steps) {
            if (!step.collective || step.collective->group_size == 1) {
                continue;
            }
            TrafficCount& row = rows[static_cast<std::size_t>(step.collective->kind)];
            const std::int64_t times = checked_mul(step.times, steps);
            row.predicted_calls = checked_add(row.predicted_calls, checked_mul(devices, times));
            row.predicted_bytes =
                checked_add(row.predicted_bytes, checked_mul(step.collective->wire_bytes_total / stages, times));
            if (row.kind == mesh::CollectiveKind::all_to_all_v) {
                const std::int64_t worst = checked_mul(step.collective->worst_wire_bytes_total / stages, times);
                row.most_bytes = checked_add(row.most_bytes.value_or(0), worst);
            }
        }
    }
    TrafficCount& sends = rows[static_cast<std::size_t>(mesh::CollectiveKind::send)];
    for (const plan::Stage& stage : plan.stages) {
        if (stage.sent_bytes > 0) {  // one call on either side
            sends.predicted_calls = checked_add(sends.predicted_calls, checked_mul(2 * devices, steps));
            const std::int64_t bytes = checked_mul(stage.sent_bytes, devices);
            sends.predicted_bytes = checked_add(sends.predicted_bytes, checked_mul(bytes, steps));
        }
    }
    return rows;
}

std::vector<TrafficCount> compare_traffic(comm::World& world, const plan::Plan& plan, const comm::TrafficTable& own,
                                          std::int64_t steps) {
    std::array<std::int64_t, 2 * comm::collective_kinds> sums{};
    for (std::size_t k = 0; k < comm::collective_kinds; ++k) {
        sums[2 * k] = own[k].calls;
        sums[2 * k + 1] = own[k].wire_bytes;
    }
    world.all_reduce(std::span<std::int64_t>(sums), comm::WorldOp::sum);
    std::vector<TrafficCount> rows = predicted_traffic(plan, steps);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        rows[k].counted_calls = sums[2 * k];
        rows[k].counted_bytes = sums[2 * k + 1];
    }
    std::erase_if(rows, [](const TrafficCount& row) { return row.predicted_calls == 0 && row.counted_calls == 0; });
    return rows;
}

std::vector<MemoryCount> compare_memory(comm::World& world, const plan::Plan& plan, const Allocator& allocator) {
    const auto parts = [](const plan::MemoryPerDevice& memory) {
        return std::array{memory.parameters, memory.cache, memory.arena, memory.activations, memory.communication};
    };
    constexpr std::array categories = {Category::parameters, Category::cache, Category::arena, Category::activations,
                                       Category::communication};
    const auto of_plan = parts(plan.memory);
    const auto of_stage =
        parts(plan.stages.size() == 1 ? plan.memory : plan.stages[plan::stage_of(plan, world.rank())].memory);
    std::array<std::int64_t, categories.size()> lowest{};  // each rank against its own stage
    for (std::size_t i = 0; i < categories.size(); ++i) {
        lowest[i] = of_plan[i] + allocator.peak(categories[i]) - of_stage[i];
    }
    std::array<std::int64_t, categories.size()> highest = lowest;
    world.all_reduce(std::span<std::int64_t>(lowest), comm::WorldOp::min);
    world.all_reduce(std::span<std::int64_t>(highest), comm::WorldOp::max);
    std::vector<MemoryCount> rows;
    for (std::size_t i = 0; i < categories.size(); ++i) {
        rows.push_back({categories[i], of_plan[i], lowest[i], highest[i]});
    }
    return rows;
}

}  // namespace shardplan::exec
