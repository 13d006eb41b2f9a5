// Keys that other systems have and jobs have not: what holds here instead, for a message that says more than "unknown".
#pragma once

#include <string>
#include <string_view>

namespace shardplan::config {

struct KnownElsewhere {
    std::string_view keys;  ///< separated by blanks, with one at each end
    std::string_view what;  ///< follows "options.key: " in the message
    std::string_view hint;  ///< # stands for the number given
};

/// The row of `key`, or nullptr.
const KnownElsewhere* known_elsewhere(std::string_view key);

/// The row for a workload.mode that is a training step.
const KnownElsewhere& training();

}  // namespace shardplan::config
