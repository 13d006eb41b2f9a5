// Which cores the ranks may run on, and how many threads follow from it. What the system says about this process is
// read here; how it is shared out is pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardplan::comm {

struct RankCores {
    std::string host;
    std::vector<int> cores;  ///< ascending, as the system numbers them: the rank's affinity
    /// Cores' worth of time that the rank's control group (a container) has, shared by all of its ranks; 0 = no limit.
    double quota = 0.0;
};

/// Of this process.
RankCores own_cores();

/// Of all ranks, on all of them. Collective.
std::vector<RankCores> gather_cores(World& world);

/// The rank's share: each core is shared by those of its host's ranks that may use it; at least 1.
int fair_threads(std::span<const RankCores> ranks, std::int64_t rank);

/// True where the ranks of some host have more threads together than cores. threads: of each rank.
bool oversubscribed(std::span<const RankCores> ranks, std::span<const std::int64_t> threads);

/// "0-3,8"
std::string cores_text(std::span<const int> cores);

}  // namespace shardplan::comm
