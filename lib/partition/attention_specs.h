// The specs of an attention's tensors as EasyDeL 0.0.80 composes them from a PartitionAxis (semantics 1a.4, both memory
// orders). It composes only: no correction, no duplicate check; an axis may appear twice, which the caller refuses.
#pragma once

#include <cstdint>

#include "partition/partition_axis.h"

namespace shardplan::partition {

enum class AttentionLayout : std::uint8_t {
    bshd,  ///< batch, sequence, heads, dimension
    bhsd,  ///< batch, heads, sequence, dimension
};

struct AttentionSpecs {
    PartitionSpec query;
    PartitionSpec key;
    PartitionSpec value;
    PartitionSpec bias;  ///< batch, heads, queries, keys in both orders
    PartitionSpec output;
};

/// `bias_dim_eql`: the bias has as many heads as the queries, so it is cut as they are; upstream ignores it in bhsd
/// outside of decode, and takes head_axis, not its decode field, for it: so does this.
AttentionSpecs attention_specs(const PartitionAxis& partition_axis, Phase phase, AttentionLayout layout,
                               bool bias_dim_eql);

}  // namespace shardplan::partition
