// Sending tokens to the ranks that hold their experts, and summing what comes back: the local halves of an all-to-all
// dispatcher. Pure memory work, the same for every set of kernels. A token goes once to each rank that holds at least
// one of its experts; rows are ordered by rank, then by token, so counts alone say whose they are.
// Wrong shapes or dtypes throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <span>

#include "base/interval.h"
#include "tensor/view.h"

namespace shardplan::kernels {

/// Buffers with room for the worst case: each token to min(chosen experts, ranks) ranks.
struct DispatchBuffers {
    tensor::View rows;     ///< [M, e], as x
    tensor::View routing;  ///< [M, X of a rank] f32: the weights of the receiver's experts
    tensor::View tokens;   ///< [M] i32: number of the token, counted over all leading dimensions of x
    tensor::View counts;   ///< [n] i64: rows for each rank
};

/// x [..., e], routing [..., X] f32; experts[p] = those of rank p, all of one number. Rows beyond the counts are left
/// as they are.
void dispatch_tokens(const tensor::ConstView& x, const tensor::ConstView& routing,
                     std::span<const base::Interval> experts, const DispatchBuffers& buffers);

/// y[t, :] = sum of the rows of token t, in order, in float, rounded once; zero for a token without rows.
/// rows [M, o], tokens and counts of dispatch_tokens, y [..., o].
void combine_tokens(const tensor::ConstView& rows, const tensor::ConstView& tokens, const tensor::ConstView& counts,
                    const tensor::View& y);

/// The sum of counts [n] i64.
std::int64_t row_count(const tensor::ConstView& counts);

}  // namespace shardplan::kernels
