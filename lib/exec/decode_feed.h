// What a sharded run feeds to a plan whose step has one token of each sequence behind a cache, or several (insert):
// prompts of one or of different lengths, then either the given tokens or, when generating, the most likely ones. All
// prompts end with the same step, from which whole steps are counted backwards: until a prompt begins, its first tokens
// are fed to its first positions again and again, and what is left of the prompt's length shares positions with the
// step behind it. Both write what the cache holds already or will hold, which changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/tokens.h"

namespace shardplan::exec {

class DecodeFeed {
public:
    /// lengths: of the prompts, one per sequence, 1 ... prompt, with more than one token per step also 0; prompt: the
    /// longest allowed. `measured` steps: after the prompt; generating, the first of them is the one that ends the
    /// prompt. tokens: of each sequence in a step; 1 when generating.
    DecodeFeed(std::vector<std::int64_t> lengths, std::int64_t prompt, std::int64_t measured, bool generate,
               std::int64_t tokens = 1);

    std::int64_t first_measured() const { return (prompt_ + tokens_ - 1) / tokens_ - (generate_ ? 1 : 0); }
    std::int64_t steps() const { return first_measured() + measured_; }

    /// Of the first token that sequence is fed in a step; each sequence's cache holds so many tokens before.
    std::int64_t position(std::int64_t sequence, std::int64_t step) const;
    std::vector<std::int64_t> positions(std::int64_t step) const;

    /// The tokens of a step: [batch, tokens].
    TokenBatch tokens(const TokenBatch& all, std::int64_t step) const;

    /// Writes what measured step `step` generated behind what was fed: where the next step takes it from.
    void append(TokenBatch& all, std::int64_t step, std::span<const std::int32_t> generated) const;

private:
    std::vector<std::int64_t> lengths_;
    std::int64_t prompt_;
    std::int64_t measured_;
    bool generate_;
    std::int64_t tokens_;
};

}  // namespace shardplan::exec
