#include "exec/tokens.h"

#include "base/checked.h"
#include "base/hash.h"

namespace shardplan::exec {

TokenBatch TokenBatch::slice(base::Interval tokens) const {
    TokenBatch result{batch, tokens.size(), {}};
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto row = ids.begin() + static_cast<std::ptrdiff_t>(b * length);
        result.ids.insert(result.ids.end(), row + static_cast<std::ptrdiff_t>(tokens.begin),
                          row + static_cast<std::ptrdiff_t>(tokens.end));
    }
    return result;
}

TokenBatch TokenBatch::rows(std::int64_t first, std::int64_t count) const {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first * length);
    return {count, length, {begin, begin + static_cast<std::ptrdiff_t>(count * length)}};
}

TokenBatch TokenBatch::widened(std::int64_t new_length) const {
    TokenBatch result{batch, new_length, {}};
    result.ids.reserve(static_cast<std::size_t>(base::checked_mul(batch, new_length)));
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto row = ids.begin() + static_cast<std::ptrdiff_t>(b * length);
        result.ids.insert(result.ids.end(), row, row + static_cast<std::ptrdiff_t>(length));
        result.ids.resize(static_cast<std::size_t>((b + 1) * new_length), 0);
    }
    return result;
}

void copy_ids(const TokenBatch& ids, const plan::TokenOrder& order, const std::vector<base::Interval>& ranges,
              const tensor::View& to) {
    std::int32_t* out = to.as<std::int32_t>();
    for (std::int64_t b = ranges[0].begin; b < ranges[0].end; ++b) {
        for (std::int64_t t = ranges[1].begin; t < ranges[1].end; ++t) {
            *out++ = ids.at(b, order.position(t));
        }
    }
}

TokenBatch seeded_tokens(std::uint64_t seed, std::int64_t batch, std::int64_t length, std::int64_t vocab) {
    TokenBatch tokens{batch, length, {}};
    tokens.ids.reserve(static_cast<std::size_t>(base::checked_mul(batch, length)));
    for (std::int64_t b = 0; b < batch; ++b) {
        const std::uint64_t row = base::splitmix64(base::splitmix64(seed) + static_cast<std::uint64_t>(b));
        for (std::int64_t t = 0; t < length; ++t) {
            const std::uint64_t bits = base::splitmix64(row ^ static_cast<std::uint64_t>(t));
            tokens.ids.push_back(static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(vocab)));
        }
    }
    return tokens;
}

}  // namespace shardplan::exec
