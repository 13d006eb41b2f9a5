// The steps of an attention whose keys lie on several devices: partial softmaxes that are merged by collectives, or a
// ring in which blocks of keys and values pass by. What is moved and why was decided before (lower.cpp).
#pragma once

#include <vector>

#include "plan/block_builder.h"

namespace shardplan::plan {

struct AttentionSteps {
    BlockBuilder& builder;
    const model::Op& op;
    ComputeStep prototype;  ///< op and module, for every step
    partition::Layout output;
    double flops = 0.0;  ///< of the whole attention, per device
};

/// Keys and values stay: partial softmax over the local ones, maxima and sums reduced over `axes`; the result is a
/// pending sum over them. `inputs`: q, k, v.
ValueId emit_merged_attention(const AttentionSteps& steps, const std::vector<ValueId>& inputs,
                              const mesh::AxisList& axes);

/// Queries stay: blocks of keys and values go `passes` times to the next device of the group along `axes`, and each is
/// added to the running softmax. Beside the own block a device holds one more, of keys or of values.
ValueId emit_ring_attention(const AttentionSteps& steps, const std::vector<ValueId>& inputs, const mesh::AxisList& axes,
                            std::int64_t passes);

}  // namespace shardplan::plan
