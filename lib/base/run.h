// A run: consecutive indices that stand for consecutive positions, as the tokens of a chunk of a sequence do.
#pragma once

#include <cstdint>

namespace shardplan::base {

struct Run {
    std::int64_t first = 0;     ///< index of the first element
    std::int64_t count = 0;     ///< elements
    std::int64_t position = 0;  ///< position of the first element; the next ones follow
    friend bool operator==(const Run&, const Run&) = default;
};

}  // namespace shardplan::base
