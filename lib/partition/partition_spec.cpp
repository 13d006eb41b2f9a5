#include "partition/partition_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardplan::partition {

std::string to_string(const SpecEntry& entry) {
    if (entry.empty()) {
        return "None";
    }
    if (entry.size() == 1) {
        return fmt::format("'{}'", entry.front());
    }
    return fmt::format("('{}')", fmt::join(entry, "','"));
}

std::string to_string(const PartitionSpec& spec) {
    std::vector<std::string> parts;
    parts.reserve(spec.entries.size());
    for (const SpecEntry& entry : spec.entries) {
        parts.push_back(to_string(entry));
    }
    return fmt::format("P({}{})", fmt::join(parts, ","), parts.size() == 1 ? "," : "");
}

}  // namespace shardplan::partition
