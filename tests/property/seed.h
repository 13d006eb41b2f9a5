// The seed of a run: SHARDPLAN_SEED, 1 when it is not set.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace shardplan::test {

inline std::uint64_t run_seed() {
    const char* text = std::getenv("SHARDPLAN_SEED");
    return text == nullptr || *text == '\0' ? 1 : std::stoull(text);
}

}  // namespace shardplan::test
