// What a sharded run feeds to a plan of one token per step: prompts of one or of different lengths, then either the
// given tokens or, when generating, the most likely ones. All prompts end with the same step: a shorter one begins
// later, and until then its first token is fed to its first position again and again, which changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/tokens.h"

namespace shardplan::exec {

class DecodeFeed {
public:
    /// lengths: of the prompts, one per sequence, 1 ... prompt; prompt: the longest allowed. `measured` steps: after
    /// the prompt; generating, the first of them is the one that ends the prompt.
    DecodeFeed(std::vector<std::int64_t> lengths, std::int64_t prompt, std::int64_t measured, bool generate);

    std::int64_t first_measured() const { return prompt_ - (generate_ ? 1 : 0); }
    std::int64_t steps() const { return first_measured() + measured_; }

    /// Of the token that sequence is fed in a step; each sequence's cache holds so many tokens before.
    std::int64_t position(std::int64_t sequence, std::int64_t step) const;
    std::vector<std::int64_t> positions(std::int64_t step) const;

    /// The tokens of a step: [batch, 1].
    TokenBatch tokens(const TokenBatch& all, std::int64_t step) const;

    /// Writes what measured step `step` generated behind what was fed: where the next step takes it from.
    void append(TokenBatch& all, std::int64_t step, std::span<const std::int32_t> generated) const;

private:
    std::vector<std::int64_t> lengths_;
    std::int64_t prompt_;
    std::int64_t measured_;
    bool generate_;
};

}  // namespace shardplan::exec
