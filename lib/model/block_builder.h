// BlockBuilder: appends tensors and operations to one block and enters parameters into the list that all blocks of a
// graph share. It knows shapes and names, nothing of layers or families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/graph.h"

namespace shardplan::model {

/// What an operation leaves: an activation, of the workload's dtype unless another is given.
struct Activation {
    std::string name;
    TensorRole role = TensorRole::free;
    tensor::Shape shape;
    std::optional<tensor::DType> dtype = std::nullopt;
};

/// A linear with its bias, as far as both follow from one description.
struct LinearSpec {
    std::string op;      ///< "q_proj"
    std::string tensor;  ///< checkpoint name without ".weight"
    std::string part;    ///< of a fused tensor
    Slot slot = Slot::none;
    ParameterKind kind = ParameterKind::column_linear;
    ParallelDim parallel = ParallelDim::none;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t stored_out = 0;  ///< of the whole fused tensor; 0 = out without its padding
    std::int64_t padding = 0;     ///< of `out`: Parameter::padding of weight and bias
    FusedView rows;               ///< of the output dimension; its `dim` is set by the builder
    bool transposed = false;      ///< stored [in, out]
    TensorRole role = TensorRole::free;
};

class BlockBuilder {
public:
    BlockBuilder(std::string name, const Workload& workload, std::vector<Parameter>& parameters);

    TensorId input(std::string name, TensorKind kind, TensorRole role, tensor::Shape shape, tensor::DType dtype);
    /// The tensor of the parameter; entered once per block and once per graph (by name and part).
    TensorId parameter(Parameter parameter);
    TensorId apply(OpKind kind, std::string name, Slot slot, std::vector<TensorId> inputs, Activation output,
                   OpAttributes attributes = {});
    /// The op writes an existing tensor (a cache).
    void apply_into(OpKind kind, std::string name, std::vector<TensorId> inputs, TensorId output);

    TensorId linear(TensorId x, const LinearSpec& spec);
    /// The weight alone, for another op.
    TensorId weight(const LinearSpec& spec);
    /// Adds the bias of the linear; the output has `role`.
    TensorId bias(TensorId x, const LinearSpec& spec, TensorRole role);
    /// `tensor` is the checkpoint name of the norm without ".weight".
    TensorId norm(TensorId x, const std::string& name, Slot slot, const NormSpec& spec, const std::string& tensor,
                  TensorRole role = TensorRole::free);
    TensorId scale(TensorId x, const std::string& name, double factor, TensorRole role);
    TensorId add(TensorId x, TensorId y, const std::string& name, TensorRole role);

    const tensor::Shape& shape(TensorId id) const { return block_.tensors[static_cast<std::size_t>(id)].shape; }
    TensorRole role(TensorId id) const { return block_.tensors[static_cast<std::size_t>(id)].role; }
    const Workload& workload() const { return workload_; }
    Block take(std::optional<TensorId> input, TensorId output, std::vector<int> layers);

private:
    TensorId append(TensorInfo tensor);

    const Workload& workload_;
    std::vector<Parameter>& parameters_;
    Block block_;
};

}  // namespace shardplan::model
