// Which sizes would have worked: for the hint of a dimension that does not divide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/placement.h"

namespace shardplan::plan {

/// The divisors of `units`, ascending, that also suit every other dimension of the job which the same axes cut (heads,
/// key/value heads with sharing, MLP width, vocabulary, hidden size, batch, sequence, cache unless it grows). At
/// most 24.
std::vector<std::int64_t> working_sizes(const Job& job, const partition::SpecEntry& axes, std::int64_t units,
                                        bool cache_grows = false);

/// What would work instead of `dim` over its axes (of size `product`).
std::string size_hint(const Job& job, const DimRequest& dim, const partition::SpecEntry& axes, std::int64_t product,
                      bool cache_grows = false);

/// The divisors of n up to `largest_searched` with their cofactors, ascending: all of them where n is at most its
/// square.
std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t largest_searched);

/// Megatron-Core's padded vocabulary: the next multiple of 128 * parts (semantics 2.4).
std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t parts);

}  // namespace shardplan::plan
