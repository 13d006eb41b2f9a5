// The one block of memory in which a rank's steps work, and where the values of each block lie in it, either way up
// (plan/arena.h). Allocated once, as large as the plan says.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "exec/buffer.h"
#include "plan/plan.h"

namespace shardplan::exec {

class Arena {
public:
    /// @pre plan outlives it
    Arena(const plan::Plan& plan, const plan::Stage& stage, Allocator& allocator);

    /// Whether a use of the stage, an index into Plan::sequence, has the arena upside down.
    bool turned(int use) const { return turned_[static_cast<std::size_t>(use - first_use_)]; }

    /// Per value of a block its first byte; null for those that have no memory in the arena.
    const std::vector<std::byte*>& places(std::size_t block, bool turned) const {
        return places_[block][turned ? 1 : 0];
    }

    /// First of `bytes` bytes of staging or scratch; null where the plan gives them no place.
    std::byte* at(std::int64_t offset, std::int64_t bytes, bool turned) const;

    std::int64_t bytes() const { return buffer_.bytes(); }

private:
    void place_values(const plan::BlockPlan& block, bool turned, std::vector<std::byte*>& places) const;

    Buffer buffer_;
    int first_use_ = 0;
    std::vector<bool> turned_;                                    ///< per use of the stage
    std::vector<std::array<std::vector<std::byte*>, 2>> places_;  ///< per block; empty where the stage has no use of it
};

}  // namespace shardplan::exec
