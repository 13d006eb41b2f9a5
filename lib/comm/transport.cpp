#include "comm/transport.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan::comm {

std::string describe(std::span<const WindowReport> windows) {
    std::int64_t groups = 0;
    std::int64_t bytes = 0;
    const WindowReport* farthest = nullptr;
    for (const WindowReport& window : windows) {
        bytes += window.bytes;
        if (window.bytes > 0) {
            groups += 1;
            farthest = farthest == nullptr || window.latency > farthest->latency ? &window : farthest;
        }
    }
    if (farthest == nullptr) {
        return windows.empty() ? "" : fmt::format("collectives by MPI: {}", windows.front().refused);
    }
    std::string text =
        fmt::format("collectives through shared memory: {:.1f} MiB per rank beside the plan's, {} group{}",
                    static_cast<double>(bytes) / (1 << 20), groups, groups == 1 ? "" : "s");
    if (farthest->latency > 0.0) {
        text += fmt::format("; cores {:.0f} ns apart, {} stores", farthest->latency,
                            farthest->stores == Stores::streaming ? "streaming" : "plain");
    }
    return text;
}

}  // namespace shardplan::comm
