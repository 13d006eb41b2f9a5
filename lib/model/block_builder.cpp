#include "model/block_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardplan::model {

BlockBuilder::BlockBuilder(std::string name, const Workload& workload, std::vector<Parameter>& parameters)
    : workload_(workload), parameters_(parameters) {
    block_.name = std::move(name);
}

TensorId BlockBuilder::append(TensorInfo tensor) {
    block_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(block_.tensors.size()) - 1;
}

TensorId BlockBuilder::input(std::string name, TensorKind kind, TensorRole role, tensor::Shape shape,
                             tensor::DType dtype) {
    return append({std::move(name), kind, role, std::move(shape), dtype, -1});
}

TensorId BlockBuilder::parameter(Parameter parameter) {
    const auto known = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) {
        return p.name == parameter.name && p.part == parameter.part;
    });
    const int index = static_cast<int>(known - parameters_.begin());
    const auto present = std::find_if(block_.tensors.begin(), block_.tensors.end(),
                                      [&](const TensorInfo& t) { return t.parameter == index; });
    if (present != block_.tensors.end()) {
        return static_cast<TensorId>(present - block_.tensors.begin());
    }
    const std::string name =
        parameter.part.empty() ? parameter.name : fmt::format("{}[{}]", parameter.name, parameter.part);
    const tensor::Shape shape = parameter.shape;
    if (known == parameters_.end()) {
        parameters_.push_back(std::move(parameter));
    }
    return append({name, TensorKind::parameter, TensorRole::parameter, shape, workload_.dtype, index});
}

TensorId BlockBuilder::apply(OpKind kind, std::string name, Slot slot, std::vector<TensorId> inputs, Activation output,
                             OpAttributes attributes) {
    const TensorId id = append({std::move(output.name), TensorKind::activation, output.role, std::move(output.shape),
                                output.dtype.value_or(workload_.dtype), -1});
    block_.ops.push_back({kind, std::move(name), slot, std::move(inputs), id, std::move(attributes)});
    return id;
}

void BlockBuilder::apply_into(OpKind kind, std::string name, std::vector<TensorId> inputs, TensorId output) {
    block_.ops.push_back({kind, std::move(name), Slot::none, std::move(inputs), output, {}});
}

TensorId BlockBuilder::weight(const LinearSpec& spec) {
    const std::int64_t stored_out = spec.stored_out == 0 ? spec.out - spec.padding : spec.stored_out;
    Parameter weight;
    weight.name = spec.tensor + ".weight";
    weight.part = spec.part;
    weight.kind = spec.kind;
    weight.parallel = spec.parallel;
    weight.transposed = spec.transposed;
    weight.shape = spec.transposed ? tensor::Shape{spec.in, spec.out} : tensor::Shape{spec.out, spec.in};
    weight.padding = spec.padding;
    weight.stored_shape = spec.transposed ? tensor::Shape{spec.in, stored_out} : tensor::Shape{stored_out, spec.in};
    weight.view = spec.rows;
    weight.view.dim = spec.transposed && spec.rows.groups > 0 ? 1 : 0;
    return parameter(std::move(weight));
}

TensorId BlockBuilder::linear(TensorId x, const LinearSpec& spec) {
    tensor::Shape shape = this->shape(x);
    shape.back() = spec.out;
    OpAttributes attributes;
    attributes.transposed = spec.transposed;
    return apply(OpKind::linear, spec.op, spec.slot, {x, weight(spec)}, {spec.op + ".out", spec.role, std::move(shape)},
                 attributes);
}

TensorId BlockBuilder::bias(TensorId x, const LinearSpec& spec, TensorRole role) {
    const std::int64_t stored_out = spec.stored_out == 0 ? spec.out - spec.padding : spec.stored_out;
    Parameter bias;
    bias.name = spec.tensor + ".bias";
    bias.part = spec.part;
    const bool column = spec.kind == ParameterKind::column_linear;
    bias.kind = column ? ParameterKind::column_bias : ParameterKind::row_bias;
    bias.parallel = column ? spec.parallel : ParallelDim::none;
    bias.shape = {spec.out};
    bias.padding = spec.padding;
    bias.stored_shape = {stored_out};
    bias.view = spec.rows;
    const tensor::Shape shape = this->shape(x);
    return apply(OpKind::bias_add, spec.op + "_bias", spec.slot, {x, parameter(std::move(bias))},
                 {spec.op + ".biased", role, shape});
}

TensorId BlockBuilder::norm(TensorId x, const std::string& name, Slot slot, const NormSpec& spec,
                            const std::string& tensor, TensorRole role) {
    const tensor::Shape shape = this->shape(x);
    std::vector<TensorId> inputs = {x};
    Parameter parameter;
    parameter.shape = {shape.back()};
    parameter.stored_shape = parameter.shape;
    if (spec.has_weight) {
        parameter.name = tensor + (tensor.ends_with(".scale") ? "" : ".weight");  // grok: the whole name
        parameter.kind = ParameterKind::norm_weight;
        parameter.norm_offset = spec.weight_offset;
        inputs.push_back(this->parameter(parameter));
    }
    if (spec.has_bias) {
        parameter.name = tensor + ".bias";
        parameter.kind = ParameterKind::norm_bias;
        parameter.norm_offset = 0.0;
        inputs.push_back(this->parameter(parameter));
    }
    OpAttributes attributes;
    attributes.norm = spec;
    return apply(OpKind::norm, name, slot, std::move(inputs), {name + ".out", role, shape}, attributes);
}

TensorId BlockBuilder::scale(TensorId x, const std::string& name, double factor, TensorRole role) {
    OpAttributes attributes;
    attributes.factor = factor;
    const tensor::Shape shape = this->shape(x);
    return apply(OpKind::scale, name, Slot::none, {x}, {name + ".out", role, shape}, attributes);
}

TensorId BlockBuilder::add(TensorId x, TensorId y, const std::string& name, TensorRole role) {
    const tensor::Shape shape = this->shape(x);
    return apply(OpKind::add, name, Slot::none, {x, y}, {name + ".out", role, shape});
}

Block BlockBuilder::take(std::optional<TensorId> input, TensorId output, std::vector<int> layers) {
    block_.input = input;
    block_.output = output;
    block_.layers = std::move(layers);
    return std::move(block_);
}

}  // namespace shardplan::model
