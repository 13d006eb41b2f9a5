#include "plan/block_builder.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"

namespace shardplan::plan {

using mesh::CollectiveKind;
using partition::Layout;

BlockBuilder::BlockBuilder(int block, const LoweringContext& context)
    : context_(context),
      graph_block_(context.graph.blocks[static_cast<std::size_t>(block)]),
      versions_(graph_block_.tensors.size()) {
    plan_.block = block;
    plan_.name = graph_block_.name;
    plan_.layers = graph_block_.layers;
    add_stored_values();
}

void BlockBuilder::add_stored_values() {
    for (std::size_t t = 0; t < graph_block_.tensors.size(); ++t) {
        const model::TensorInfo& info = graph_block_.tensors[t];
        const auto id = static_cast<model::TensorId>(t);
        for (std::size_t s = 0; s < context_.stored.size(); ++s) {
            const StoredTensor& stored = context_.stored[s];
            const bool is_parameter = info.kind == model::TensorKind::parameter && stored.parameter == info.parameter &&
                                      stored.kind == StoredKind::parameter;
            const bool is_cache = info.kind == model::TensorKind::cache && stored.kind == StoredKind::cache &&
                                  stored.block == plan_.block && stored.tensor == id;
            if (is_parameter || is_cache) {
                const ValueId value = add_value(id, stored.layout, is_cache ? ValueKind::cache : ValueKind::parameter);
                plan_.values[static_cast<std::size_t>(value)].stored = static_cast<int>(s);
            }
        }
        if (info.kind == model::TensorKind::input || graph_block_.input == id) {
            const ValueId value = add_value(id, context_.asks.ask(info.role, info.shape).layout, ValueKind::input);
            if (graph_block_.input == id) {
                plan_.input = value;
            }
        }
    }
}

ValueId BlockBuilder::push(Value value) {
    value.local_shape = partition::local_shape(value.layout, value.shape, context_.mesh.refined());
    value.local_bytes = tensor::byte_count(value.local_shape, value.dtype);
    plan_.values.push_back(std::move(value));
    return static_cast<ValueId>(plan_.values.size()) - 1;
}

ValueId BlockBuilder::add_value(model::TensorId tensor, const Layout& layout, ValueKind kind) {
    const model::TensorInfo& info = this->tensor(tensor);
    Value value;
    value.kind = kind;
    value.tensor = tensor;
    value.name = info.name;
    value.layout = layout;
    value.shape = info.shape;
    value.dtype = info.dtype;
    const ValueId id = push(std::move(value));
    versions_[static_cast<std::size_t>(tensor)].push_back(id);
    return id;
}

ValueId BlockBuilder::add_auxiliary(std::string name, const Layout& layout, const tensor::Shape& shape,
                                    tensor::DType dtype) {
    Value value;
    value.name = std::move(name);
    value.layout = layout;
    value.shape = shape;
    value.dtype = dtype;
    return push(std::move(value));
}

ValueId BlockBuilder::add_copy(ValueId of, const std::string& suffix) {
    const Value source = value(of);
    return add_auxiliary(source.name + suffix, source.layout, source.shape, source.dtype);
}

void BlockBuilder::make_alias(ValueId value, ValueId of) {
    const Value& target = plan_.values[static_cast<std::size_t>(of)];
    plan_.values[static_cast<std::size_t>(value)].alias_of = target.alias_of >= 0 ? target.alias_of : of;
}

void BlockBuilder::compute(ComputeStep step, Loop loop) {
    plan_.steps.push_back({std::move(step), std::nullopt, {}, loop.id, std::max<std::int64_t>(1, loop.times)});
}

BlockBuilder::Nearest BlockBuilder::nearest(model::TensorId tensor, const Layout& layout) const {
    const model::TensorInfo& info = this->tensor(tensor);
    const auto bytes = static_cast<double>(tensor::byte_count(info.shape, info.dtype));
    Nearest best{-1, std::numeric_limits<double>::infinity(), 0};
    for (const ValueId id : versions(tensor)) {
        const partition::ReshardPath* path = context_.resharder.path(value(id).layout, layout);
        if (path != nullptr && path->wire_per_byte * bytes < best.bytes) {
            best = {id, path->wire_per_byte * bytes, path->collectives};
        }
    }
    return best;
}

double BlockBuilder::least_bytes(model::TensorId tensor, const Layout& layout) const {
    const model::TensorInfo& info = this->tensor(tensor);
    double least = 1.0;
    for (const ValueId id : versions(tensor)) {
        const mesh::Mesh& mesh = context_.mesh.refined();
        least = std::min(least, partition::least_wire_per_byte(value(id).layout, layout, mesh));
    }
    return least * static_cast<double>(tensor::byte_count(info.shape, info.dtype));
}

void BlockBuilder::collective(CollectiveStep step, ValueId input, ValueId output, Loop loop) {
    const mesh::Mesh& mesh = context_.mesh.refined();
    const Value& in = value(input);
    const Value& out = value(output);
    step.input = input;
    step.output = output;
    step.names = context_.mesh.names(step.axes);
    step.group_size = mesh.size(step.axes);
    step.payload_bytes = in.local_bytes;
    std::int64_t movers = 0;
    if (step.kind == CollectiveKind::permute) {
        movers = step.shift != 0 ? step.group_size
                                 : partition::permute_movers(in.layout, {step.kind, step.axes, 0, 0, out.layout}, mesh);
    }
    const std::int64_t groups = mesh.device_count() / step.group_size;
    const std::int64_t group = step.kind == CollectiveKind::all_to_all_v
                                   ? step.wire_bytes_total
                                   : mesh::group_wire_bytes(step.kind, step.group_size, step.payload_bytes, movers);
    step.wire_bytes = base::ceil_div(group, step.group_size);
    step.wire_bytes_total = base::checked_mul(group, groups);
    step.worst_wire_bytes_total = base::checked_mul(step.worst_wire_bytes_total, groups);
    step.staging_bytes =
        mesh::staging_bytes(step.kind, step.group_size, in.local_bytes, out.local_bytes, tensor::size_of(in.dtype));
    if (input == output) {
        step.staging_bytes = in.local_bytes;
    }
    plan_.steps.push_back({std::nullopt, std::move(step), {}, loop.id, std::max<std::int64_t>(1, loop.times)});
}

ValueId BlockBuilder::reshard(ValueId from, const Layout& layout, const std::string& reason) {
    const partition::ReshardPath* path = context_.resharder.path(value(from).layout, layout);
    const bool stored = value(from).kind == ValueKind::parameter || value(from).kind == ValueKind::cache ||
                        value(from).kind == ValueKind::gathered;
    const ValueKind kind = stored ? ValueKind::gathered : ValueKind::activation;
    ValueId current = from;
    for (const partition::ReshardStep& move : path->steps) {
        const ValueId next = add_value(value(from).tensor, move.after, kind);
        collective({.kind = move.kind,
                    .axes = move.axes,
                    .names = {},
                    .dim = move.dim,
                    .concat_dim = move.concat_dim,
                    .reason = reason},
                   current, next);
        current = next;
    }
    return current;
}

ValueId BlockBuilder::reduce(ValueId input, CollectiveKind kind, const mesh::AxisList& axes,
                             const std::string& reason) {
    const Value source = value(input);
    Layout layout = source.layout;
    layout.pending = layout.pending - axes.set();
    const ValueId output = add_auxiliary(source.name + ".reduced", layout, source.shape, source.dtype);
    collective({.kind = kind, .axes = axes, .names = {}, .reason = reason}, input, output);
    return output;
}

void BlockBuilder::pass_on(ValueId from, ValueId to, const mesh::AxisList& axes, const std::string& reason, Loop loop) {
    collective({.kind = CollectiveKind::permute, .axes = axes, .names = {}, .shift = 1, .reason = reason}, from, to,
               loop);
}

ValueId BlockBuilder::finish() {
    const model::TensorInfo& info = tensor(graph_block_.output);
    const Ask& ask = context_.asks.ask(info.role, info.shape);
    if (ask.strength == Ask::Strength::enforce) {
        return reshard(nearest(graph_block_.output, ask.layout).value, ask.layout, "block output");
    }
    const ValueId last = versions(graph_block_.output).back();
    Layout finished = value(last).layout;
    if (finished.pending.empty()) {
        return last;
    }
    finished.pending = {};
    return reshard(last, ask.strength == Ask::Strength::hint ? ask.layout : finished, "block output");
}

}  // namespace shardplan::plan
