#include "exec/counts.h"

#include <array>

#include "base/checked.h"

namespace shardplan::exec {

using base::checked_add;
using base::checked_mul;

std::vector<TrafficCount> predicted_traffic(const plan::Plan& plan, std::int64_t steps) {
    std::vector<TrafficCount> rows(comm::collective_kinds);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        rows[k].kind = static_cast<mesh::CollectiveKind>(k);
    }
    const std::int64_t devices = plan.mesh.refined().device_count();
    for (const model::BlockUse& use : plan.sequence) {
        for (const plan::Step& step : plan.blocks[static_cast<std::size_t>(use.block)].steps) {
            if (!step.collective || step.collective->group_size == 1) {
                continue;
            }
            TrafficCount& row = rows[static_cast<std::size_t>(step.collective->kind)];
            const std::int64_t times = checked_mul(step.times, steps);
            row.predicted_calls = checked_add(row.predicted_calls, checked_mul(devices, times));
            row.predicted_bytes =
                checked_add(row.predicted_bytes, checked_mul(step.collective->wire_bytes_total, times));
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
    std::vector<MemoryCount> rows = {{Category::parameters, plan.memory.parameters},
                                     {Category::cache, plan.memory.cache},
                                     {Category::activations, plan.memory.activations},
                                     {Category::communication, plan.memory.communication}};
    std::array<std::int64_t, 4> lowest{};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        lowest[i] = allocator.peak(rows[i].category);
    }
    std::array<std::int64_t, 4> highest = lowest;
    world.all_reduce(std::span<std::int64_t>(lowest), comm::WorldOp::min);
    world.all_reduce(std::span<std::int64_t>(highest), comm::WorldOp::max);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].lowest = lowest[i];
        rows[i].highest = highest[i];
    }
    return rows;
}

}  // namespace shardplan::exec
