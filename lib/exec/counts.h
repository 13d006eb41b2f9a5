// Predicted against counted: the bytes and calls of collectives, and the memory of every rank. Both must agree exactly,
// but for exchanges whose sizes depend on the routing of tokens: their prediction is for balanced experts, and what was
// counted must be what the unsharded model's routing asks for, at most the worst case.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "exec/buffer.h"
#include "plan/plan.h"

namespace shardplan::exec {

/// One kind of collective, summed over all ranks and all steps that were run.
struct TrafficCount {
    mesh::CollectiveKind kind = mesh::CollectiveKind::slice;
    std::int64_t predicted_calls = 0;  ///< of ranks: a collective counts once for each rank, in groups of more than one
    std::int64_t counted_calls = 0;
    std::int64_t predicted_bytes = 0;  ///< on the wire
    std::int64_t counted_bytes = 0;
    std::optional<std::int64_t> most_bytes;    ///< all_to_all_v: of the worst routing
    std::optional<std::int64_t> routed_bytes;  ///< all_to_all_v: of the unsharded model's routing, where it is known
    /// As predicted, or, where the data decide, as routed and within the worst case.
    bool equal() const {
        const bool bytes = most_bytes
                               ? counted_bytes <= *most_bytes && counted_bytes == routed_bytes.value_or(counted_bytes)
                               : predicted_bytes == counted_bytes;
        return predicted_calls == counted_calls && bytes;
    }
};

/// What the plan says: all kinds, in order, for `steps` steps of the model.
std::vector<TrafficCount> predicted_traffic(const plan::Plan& plan, std::int64_t steps);

/// Adds what the ranks counted, only kinds that occur are kept. Collective.
std::vector<TrafficCount> compare_traffic(comm::World& world, const plan::Plan& plan, const comm::TrafficTable& own,
                                          std::int64_t steps);

/// Peak bytes of one category per device. In a pipeline each rank is compared with its own stage; the numbers are those
/// of the stage that needs the most, `lowest` and `highest` differ from it by what some rank's differ from its stage's.
struct MemoryCount {
    Category category = Category::parameters;
    std::int64_t predicted = 0;
    std::int64_t lowest = 0;  ///< allocated, over the ranks
    std::int64_t highest = 0;
    bool equal() const { return predicted == lowest && predicted == highest; }
};

/// The categories of the plan. Collective.
std::vector<MemoryCount> compare_memory(comm::World& world, const plan::Plan& plan, const Allocator& allocator);

}  // namespace shardplan::exec
