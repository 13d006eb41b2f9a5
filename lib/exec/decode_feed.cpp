#include "exec/decode_feed.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace shardplan::exec {

DecodeFeed::DecodeFeed(std::vector<std::int64_t> lengths, std::int64_t prompt, std::int64_t measured, bool generate,
                       std::int64_t tokens)
    : lengths_(std::move(lengths)), prompt_(prompt), measured_(measured), generate_(generate), tokens_(tokens) {
    const auto bad = [&](std::int64_t length) { return length < 0 || length > prompt; };
    if (lengths_.empty() || measured < 1 || tokens < 1 || (generate && tokens > 1) ||
        std::any_of(lengths_.begin(), lengths_.end(), bad)) {
        throw std::invalid_argument("prompts have 0 ... sequence_length tokens");
    }
}

std::int64_t DecodeFeed::position(std::int64_t sequence, std::int64_t step) const {
    const std::int64_t length = lengths_[static_cast<std::size_t>(sequence)];
    return std::max<std::int64_t>(0, length + (step - (prompt_ + tokens_ - 1) / tokens_) * tokens_);
}

std::vector<std::int64_t> DecodeFeed::positions(std::int64_t step) const {
    std::vector<std::int64_t> result;
    for (std::int64_t b = 0; b < std::ssize(lengths_); ++b) {
        result.push_back(position(b, step));
    }
    return result;
}

TokenBatch DecodeFeed::tokens(const TokenBatch& all, std::int64_t step) const {
    TokenBatch result{all.batch, tokens_, {}};
    for (std::int64_t b = 0; b < all.batch; ++b) {
        const std::int64_t first = position(b, step);
        for (std::int64_t t = first; t < first + tokens_; ++t) {
            result.ids.push_back(all.at(b, t));
        }
    }
    return result;
}

void DecodeFeed::append(TokenBatch& all, std::int64_t step, std::span<const std::int32_t> generated) const {
    for (std::int64_t b = 0; b < all.batch; ++b) {
        const std::int64_t next = position(b, step) + 1;
        if (next < all.length) {
            all.ids[static_cast<std::size_t>(b * all.length + next)] = generated[static_cast<std::size_t>(b)];
        }
    }
}

}  // namespace shardplan::exec
