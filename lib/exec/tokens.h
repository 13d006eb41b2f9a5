// Token ids of a batch of sequences of equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interval.h"
#include "plan/plan.h"
#include "tensor/view.h"

namespace shardplan::exec {

struct TokenBatch {
    std::int64_t batch = 0;
    std::int64_t length = 0;
    std::vector<std::int32_t> ids;  ///< [batch, length]

    std::int32_t at(std::int64_t sequence, std::int64_t token) const {
        return ids[static_cast<std::size_t>(sequence * length + token)];
    }
    /// The tokens of all sequences in this range of positions. @pre the range lies in [0, length)
    TokenBatch slice(base::Interval tokens) const;
    /// Sequences [first, first + count).
    TokenBatch rows(std::int64_t first, std::int64_t count) const;
    /// Every sequence with id 0 behind it up to `new_length`. @pre new_length >= length
    TokenBatch widened(std::int64_t new_length) const;
};

/// The ids of ranges[0] of the batch and ranges[1] of the slots that `order` fills, row by row. @pre `to` is i32 of
/// this size
void copy_ids(const TokenBatch& ids, const plan::TokenOrder& order, const std::vector<base::Interval>& ranges,
              const tensor::View& to);

/// Ids in [0, vocab) that depend on seed, sequence and position only: a longer batch begins with the shorter one.
TokenBatch seeded_tokens(std::uint64_t seed, std::int64_t batch, std::int64_t length, std::int64_t vocab);

}  // namespace shardplan::exec
