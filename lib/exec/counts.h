// Predicted against counted: the bytes and calls of collectives, and the memory of every rank. Both must agree exactly.
#pragma once

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
    bool equal() const { return predicted_calls == counted_calls && predicted_bytes == counted_bytes; }
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

/// The four categories of the plan. Collective.
std::vector<MemoryCount> compare_memory(comm::World& world, const plan::Plan& plan, const Allocator& allocator);

}  // namespace shardplan::exec
