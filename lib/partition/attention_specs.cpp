#include "partition/attention_specs.h"

#include <utility>

namespace shardplan::partition {

AttentionSpecs attention_specs(const PartitionAxis& partition_axis, Phase phase, AttentionLayout layout,
                               bool bias_dim_eql) {
    const auto axes = [&](Semantic semantic, Phase in) { return partition_axis.resolve(semantic, in).axes; };
    const bool head_first = layout == AttentionLayout::bhsd;
    const bool generation = is_generation(phase);
    const auto activation = [&](Semantic length, Semantic heads, Semantic dim) {
        PartitionSpec spec{{axes(Semantic::batch, phase), axes(length, phase), axes(heads, phase), axes(dim, phase)}};
        if (head_first) {
            std::swap(spec.entries[1], spec.entries[2]);
        }
        return spec;
    };
    AttentionSpecs specs;
    specs.query = activation(Semantic::query_length, Semantic::head, Semantic::head_dim);
    specs.key = activation(Semantic::kv_length, Semantic::kv_head, Semantic::kv_head_dim);
    specs.value = specs.key;
    specs.output = specs.query;
    const bool as_queries = bias_dim_eql && (!head_first || generation);
    specs.bias.entries = {
        axes(Semantic::batch, phase),
        as_queries ? axes(Semantic::head, Phase::train) : axes(Semantic::bias_head_seq, phase),
        axes(Semantic::query_length, phase),
        axes(Semantic::bias_kv_seq, phase),
    };
    return specs;
}

}  // namespace shardplan::partition
