#include <fmt/format.h>

#include <array>
#include <utility>

#include "plan/checks/checks.h"
#include "plan/memory.h"

namespace shardplan::plan {
namespace {

std::string bytes_text(std::int64_t bytes) {
    constexpr std::array units = {std::pair{1LL << 40, "TiB"}, std::pair{1LL << 30, "GiB"}, std::pair{1LL << 20, "MiB"},
                                  std::pair{1LL << 10, "KiB"}};
    for (const auto& [size, unit] : units) {
        if (bytes >= size) {
            return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(size), unit);
        }
    }
    return fmt::format("{} bytes", bytes);
}

/// What a device must hold at least when everything stored is cut over `devices` devices without a copy.
std::int64_t devices_for_stored(const Plan& plan, std::int64_t budget) {
    std::int64_t total = 0;
    for (const StoredTensor& stored : plan.stored) {
        const auto instances = static_cast<std::int64_t>(stored.layers.size());
        total = base::checked_add(total, base::checked_mul(stored.bytes, instances));
    }
    return base::ceil_div(total, budget);
}

std::string hint_for(const Plan& plan, const MemoryPerDevice& memory, std::int64_t budget) {
    const std::int64_t batch = plan.job.workload.batch_size;
    const std::int64_t stored = memory.parameters + memory.cache;
    if (stored < budget && memory.arena > 0 && (memory.cache == 0 || batch == 1)) {
        return fmt::format(
            "parameters and cache leave {} for the activations of a step, which need {}: fewer tokens at once "
            "(batch_size, sequence_length, chunk_length), or cut them over more axes (batch_axis, sequence_axis)",
            bytes_text(budget - stored), bytes_text(memory.arena));
    }
    if (memory.parameters >= budget || memory.cache == 0 || batch == 1) {
        return fmt::format(
            "parameters and cache without any copy need {} devices of this size: cut them over more axes "
            "(weight_storage_axis, head_axis)",
            devices_for_stored(plan, budget));
    }
    const std::int64_t left = budget - memory.parameters;
    const double per_sequence = static_cast<double>(memory.cache + memory.arena) / static_cast<double>(batch);
    const auto fitting = static_cast<std::int64_t>(static_cast<double>(left) / per_sequence);
    return fmt::format("beside the parameters there is room for about {} of the {} sequences", fitting, batch);
}

void report(const Plan& plan, const MemoryPerDevice& memory, const std::string& parts, diag::Diagnostics& diagnostics) {
    const std::int64_t budget = *plan.job.device_memory;
    diagnostics.report("SP6003",
                       fmt::format("a device needs {} ({} bytes), device_memory is {} ({} bytes): {}",
                                   bytes_text(memory.total()), memory.total(), bytes_text(budget), budget, parts),
                       "/device_memory", hint_for(plan, memory, budget));
}

}  // namespace

void check_stored_memory(const CheckContext& context) {
    if (!context.plan.job.device_memory) {
        return;
    }
    const MemoryPerDevice memory = memory_per_device(context.plan);
    if (memory.total() > *context.plan.job.device_memory) {
        report(context.plan, memory,
               fmt::format("parameters {}, cache {}, before any activation", bytes_text(memory.parameters),
                           bytes_text(memory.cache)),
               context.diagnostics);
    }
}

bool check_memory(const Plan& plan, diag::Diagnostics& diagnostics) {
    const MemoryPerDevice& memory = plan.memory;
    if (!plan.job.device_memory || memory.total() <= *plan.job.device_memory) {
        return true;
    }
    report(plan, memory,
           fmt::format("parameters {}, cache {}, arena {} (activations {}, communication {})",
                       bytes_text(memory.parameters), bytes_text(memory.cache), bytes_text(memory.arena),
                       bytes_text(memory.activations), bytes_text(memory.communication)),
           diagnostics);
    return false;
}

}  // namespace shardplan::plan
