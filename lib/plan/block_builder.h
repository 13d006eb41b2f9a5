// Collects the values and steps of one block while it is lowered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/lower.h"

namespace shardplan::plan {

/// The loop that a step belongs to; none when id is 0.
struct Loop {
    int id = 0;
    std::int64_t times = 0;
};

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
    /// A value beside the graph's tensors with the layout, shape and dtype of another, named after it.
    ValueId add_copy(ValueId of, const std::string& suffix);
    void make_alias(ValueId value, ValueId of);

    Loop loop(std::int64_t times) { return {++loops_, times}; }
    void compute(ComputeStep step, Loop loop = {});
    /// Emits the path from `value` to `layout` and returns the value there.
    ValueId reshard(ValueId value, const partition::Layout& layout, const std::string& reason);
    /// One collective in place of a path: all_reduce or all_reduce_max over `axes`.
    ValueId reduce(ValueId value, mesh::CollectiveKind kind, const mesh::AxisList& axes, const std::string& reason);

    /// Each block goes to the next position of the group along `axes`, from the last to the first. `to` may be `from`.
    void pass_on(ValueId from, ValueId to, const mesh::AxisList& axes, const std::string& reason, Loop loop = {});

    /// The version from which `layout` is cheapest, and that path's cost in bytes per device.
    struct Nearest {
        ValueId value = -1;
        double bytes = 0.0;
        int collectives = 0;
    };
    Nearest nearest(model::TensorId tensor, const partition::Layout& layout) const;
    /// nearest() moves no fewer bytes than this, which needs no search.
    double least_bytes(model::TensorId tensor, const partition::Layout& layout) const;

    /// The value the next block (or the caller) gets: finished sums, in the layout asked for when there is one.
    ValueId finish();

    BlockPlan& plan() { return plan_; }
    BlockPlan take() { return std::move(plan_); }

    /// kind, axes, dimensions and reason are given; of all_to_all_v also the counts, and the wire bytes of one group.
    void collective(CollectiveStep step, ValueId input, ValueId output, Loop loop = {});

private:
    void add_stored_values();
    ValueId push(Value value);

    const LoweringContext& context_;
    const model::Block& graph_block_;
    BlockPlan plan_;
    int loops_ = 0;
    std::vector<std::vector<ValueId>> versions_;
};

}  // namespace shardplan::plan
