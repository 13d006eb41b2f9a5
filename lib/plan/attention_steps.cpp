#include "plan/attention_steps.h"

#include <string>
#include <utility>

namespace shardplan::plan {
namespace {

using mesh::AxisList;
using mesh::CollectiveKind;
using partition::Layout;
using tensor::DType;

ComputeStep step_of(const AttentionSteps& steps, ComputeKind kind, std::vector<ValueId> inputs,
                    std::vector<ValueId> outputs) {
    ComputeStep step = steps.prototype;
    step.kind = kind;
    step.inputs = std::move(inputs);
    step.outputs = std::move(outputs);
    return step;
}

/// Unnormalised output [b, s, h, d], maxima and sums [b, s, h], all f32.
struct Sums {
    ValueId output = -1;
    ValueId max = -1;
    ValueId sum = -1;
};

Layout rows_of(const Layout& queries, mesh::AxisSet pending) {
    Layout rows = queries;
    rows.rank = 3;
    rows[3] = {};
    rows.pending = pending;
    return rows;
}

Sums add_sums(const AttentionSteps& steps, ValueId q, mesh::AxisSet pending) {
    const Value queries = steps.builder.value(q);
    const tensor::Shape& whole_shape = steps.builder.tensor(steps.op.output).shape;  // values may be narrower than keys
    const tensor::Shape shape(whole_shape.begin(), whole_shape.begin() + 3);
    const Layout rows = rows_of(queries.layout, pending);
    Layout whole = queries.layout;
    whole.pending = pending;
    const std::string& name = steps.op.name;
    Sums sums;
    sums.output = steps.builder.add_auxiliary(name + ".partial", whole, whole_shape, DType::f32);
    sums.max = steps.builder.add_auxiliary(name + ".max", rows, shape, DType::f32);
    sums.sum = steps.builder.add_auxiliary(name + ".sum", rows, shape, DType::f32);
    return sums;
}

}  // namespace

ValueId emit_merged_attention(const AttentionSteps& steps, const std::vector<ValueId>& inputs, const AxisList& axes) {
    BlockBuilder& builder = steps.builder;
    const Sums own = add_sums(steps, inputs.front(), axes.set());
    ComputeStep partial = step_of(steps, ComputeKind::attention_partial, inputs, {own.output, own.max, own.sum});
    partial.flops = steps.flops;
    builder.compute(std::move(partial));
    const std::string reason = "for the softmax of " + steps.op.name;
    const ValueId max = builder.reduce(own.max, CollectiveKind::all_reduce_max, axes, reason);
    const Value sums = builder.value(own.sum);
    const ValueId scaled = builder.add_auxiliary(steps.op.name + ".rescaled", sums.layout, sums.shape, DType::f32);
    builder.compute(step_of(steps, ComputeKind::softmax_rescale, {own.sum, own.max, max}, {scaled}));
    const ValueId sum = builder.reduce(scaled, CollectiveKind::all_reduce, axes, reason);
    const ValueId output = builder.add_value(steps.op.output, steps.output, ValueKind::activation);
    builder.compute(step_of(steps, ComputeKind::softmax_merge, {own.output, own.max, max, sum}, {output}));
    return output;
}

ValueId emit_ring_attention(const AttentionSteps& steps, const std::vector<ValueId>& inputs, const AxisList& axes,
                            std::int64_t passes) {
    BlockBuilder& builder = steps.builder;
    const Sums sums = add_sums(steps, inputs[0], {});
    const std::vector<ValueId> results = {sums.output, sums.max, sums.sum};
    const double flops = steps.flops / static_cast<double>(passes + 1);
    ComputeStep own = step_of(steps, ComputeKind::attention_partial, inputs, results);
    own.flops = flops;
    builder.compute(std::move(own));
    const std::string reason = "round the ring of " + steps.op.name;
    const auto pass_on = [&](ValueId k, ValueId v, const std::vector<ValueId>& to, Loop loop) {
        builder.pass_on(k, to[0], axes, reason, loop);
        builder.pass_on(v, to[1], axes, reason, loop);
        ComputeStep more = step_of(steps, ComputeKind::attention_accumulate,
                                   {inputs[0], to[0], to[1], sums.output, sums.max, sums.sum}, results);
        more.key_shift = loop.id > 0 ? 2 : 1;
        more.flops = flops;
        builder.compute(std::move(more), loop);
    };
    if (passes > 0) {
        // The first block that arrives is a value of its own: others may read the keys of this device later on.
        const std::vector<ValueId> ring = {builder.add_copy(inputs[1], ".ring"), builder.add_copy(inputs[2], ".ring")};
        pass_on(inputs[1], inputs[2], ring, {});
        if (passes > 1) {
            pass_on(ring[0], ring[1], ring, builder.loop(passes - 1));
        }
    }
    const ValueId output = builder.add_value(steps.op.output, steps.output, ValueKind::activation);
    builder.compute(step_of(steps, ComputeKind::softmax_merge, {sums.output, sums.max, sums.max, sums.sum}, {output}));
    return output;
}

}  // namespace shardplan::plan
