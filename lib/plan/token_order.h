// In which order the tokens of a sequence lie on the sequence dimension of every activation of a prefill. Slots are
// indices of that dimension, positions those of the sequence. Plain: the same. Zig-zag over n parts (Megatron's and
// Llama 3's load balance of causal attention): the sequence is cut into 2n chunks, and part i of the dimension holds
// the chunks i and 2n-1-i, so that all parts see equally many keys.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interval.h"
#include "base/run.h"

namespace shardplan::plan {

class TokenOrder {
public:
    /// Plain, for any length.
    TokenOrder() = default;
    /// @pre length is a multiple of 2 * parts
    static TokenOrder zigzag(std::int64_t length, std::int64_t parts);

    bool plain() const { return parts_ == 1; }
    std::int64_t parts() const { return parts_; }
    std::int64_t position(std::int64_t slot) const;
    /// The slots as few runs, in order; `first` counts from slots.begin.
    std::vector<base::Run> runs(base::Interval slots) const;

private:
    std::int64_t parts_ = 1;
    std::int64_t chunk_ = 0;  ///< tokens
};

}  // namespace shardplan::plan
