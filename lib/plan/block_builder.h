// Collects the values and steps of one block while it is lowered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/lower.h"

namespace shardplan::plan {

class BlockBuilder {
public:
    BlockBuilder(int block, const LoweringContext& context);

    const model::TensorInfo& tensor(model::TensorId id) const {
        return graph_block_.tensors[static_cast<std::size_t>(id)];
    }
    const Value& value(ValueId id) const { return plan_.values[static_cast<std::size_t>(id)]; }

    /// The values that hold a tensor, each in another layout, the first one first.
    const std::vector<ValueId>& versions(model::TensorId id) const { return versions_[static_cast<std::size_t>(id)]; }

    /// A new value of a tensor of the graph, registered as one of its versions.
    ValueId add_value(model::TensorId tensor, const partition::Layout& layout, ValueKind kind);
    /// A value beside the graph's tensors (statistics).
    ValueId add_auxiliary(std::string name, const partition::Layout& layout, const tensor::Shape& shape,
                          tensor::DType dtype);
    void make_alias(ValueId value, ValueId of);

    void compute(ComputeStep step);
    /// Emits the path from `value` to `layout` and returns the value there.
    ValueId reshard(ValueId value, const partition::Layout& layout, const std::string& reason);
    /// One collective in place of a path: all_reduce or all_reduce_max over `axes`.
    ValueId reduce(ValueId value, mesh::CollectiveKind kind, const mesh::AxisList& axes, const std::string& reason);

    /// The version from which `layout` is cheapest, and that path's cost in bytes per device.
    struct Nearest {
        ValueId value = -1;
        double bytes = 0.0;
        int collectives = 0;
    };
    Nearest nearest(model::TensorId tensor, const partition::Layout& layout) const;

    BlockPlan& plan() { return plan_; }
    BlockPlan take() { return std::move(plan_); }

    /// kind, axes, dimensions and reason are given; of all_to_all_v also the counts, and the wire bytes of one group.
    void collective(CollectiveStep step, ValueId input, ValueId output);

private:
    void add_stored_values();
    ValueId push(Value value);

    const LoweringContext& context_;
    const model::Block& graph_block_;
    BlockPlan plan_;
    std::vector<std::vector<ValueId>> versions_;
};

}  // namespace shardplan::plan
