#include "model/mlp_builder.h"

#include <utility>

#include "base/checked.h"

namespace shardplan::model {
namespace {

/// A dense MLP, the layer's own or the shared expert's.
struct DenseMlp {
    std::string prefix;  ///< of the names of its ops: "", "shared_"
    std::string gate, up, gate_up, down;
    std::int64_t intermediate = 0;
    bool gated = true;
    bool fused = false;  ///< [gate | up] are one tensor
    bool up_bias = false;
};

DenseMlp layer_mlp(const ModelSpec& model) {
    const TensorNames& n = model.names;
    const MlpSpec& mlp = model.mlp;
    return {"", n.gate, n.up, n.gate_up, n.down, mlp.intermediate, mlp.gated, mlp.fused_gate_up, mlp.up_bias};
}

DenseMlp shared_mlp(const ModelSpec& model) {
    const TensorNames& n = model.names;
    const MoeSpec& moe = model.moe;
    return {"shared_", n.shared_gate,    n.shared_up, n.shared_gate_up, n.shared_down, moe.shared_intermediate,
            true,      moe.shared_fused, false};
}

TensorId mlp_in(BlockBuilder& b, TensorId x, const ModelSpec& model, const DenseMlp& mlp, bool gate) {
    LinearSpec spec;
    spec.op = mlp.prefix + (gate ? "gate_proj" : "up_proj");
    spec.slot = Slot::fc1;
    spec.parallel = ParallelDim::mlp;
    spec.in = model.hidden;
    spec.out = mlp.intermediate;
    spec.transposed = model.conv1d;
    spec.role = TensorRole::mlp_intermediate;
    spec.tensor = gate ? mlp.gate : mlp.up;
    if (mlp.fused) {
        spec.tensor = mlp.gate_up;
        spec.part = gate ? "gate" : "up";
        spec.stored_out = base::checked_mul(2, mlp.intermediate);
        spec.rows = {0, 1, spec.stored_out, gate ? 0 : mlp.intermediate, mlp.intermediate};
    }
    const TensorId t = b.linear(x, spec);
    return mlp.up_bias ? b.bias(t, spec, spec.role) : t;
}

LinearSpec down_linear(const ModelSpec& model, const DenseMlp& mlp) {
    LinearSpec spec;
    spec.op = mlp.prefix + "down_proj";
    spec.tensor = mlp.down;
    spec.slot = Slot::fc2;
    spec.kind = ParameterKind::row_linear;
    spec.parallel = ParallelDim::mlp;
    spec.in = mlp.intermediate;
    spec.out = model.hidden;
    spec.transposed = model.conv1d;
    spec.role = TensorRole::partial_hidden;
    return spec;
}

TensorId dense(BlockBuilder& b, TensorId x, const ModelSpec& model, const DenseMlp& mlp) {
    std::vector<TensorId> inputs;
    if (mlp.gated) {
        inputs.push_back(mlp_in(b, x, model, mlp, true));
    }
    inputs.push_back(mlp_in(b, x, model, mlp, false));
    OpAttributes attributes;
    attributes.activation = model.mlp.activation;
    const tensor::Shape shape = b.shape(inputs.front());
    const TensorId t = b.apply(mlp.gated ? OpKind::glu : OpKind::activation,
                               mlp.prefix + (mlp.gated ? "glu" : "activation"), Slot::activation, inputs,
                               {mlp.prefix + "mlp.activated", TensorRole::mlp_intermediate, shape}, attributes);
    return b.linear(t, down_linear(model, mlp));
}

// --- experts --------------------------------------------------------------------------------------------------------

LinearSpec small_linear(const char* op, Slot slot, const std::string& tensor, std::int64_t in, std::int64_t out) {
    LinearSpec spec;
    spec.op = op;
    spec.slot = slot;
    spec.tensor = tensor;
    spec.kind = ParameterKind::replicated_linear;
    spec.in = in;
    spec.out = out;
    return spec;
}

TensorId route(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    const MoeSpec& moe = model.moe;
    const LinearSpec linear = small_linear("router", Slot::router, model.names.router, model.hidden, moe.experts);
    std::vector<TensorId> inputs = {b.linear(x, linear)};
    if (moe.router_bias) {
        inputs.front() = b.bias(inputs.front(), linear, linear.role);
    }
    if (moe.routing.correction_bias) {
        Parameter bias;
        bias.name = model.names.router_correction;
        bias.kind = ParameterKind::router_bias;
        bias.shape = bias.stored_shape = {moe.experts};
        inputs.push_back(b.parameter(std::move(bias)));
    }
    OpAttributes attributes;
    attributes.routing = moe.routing;
    const tensor::Shape shape = b.shape(inputs.front());
    return b.apply(OpKind::route, "route", Slot::router, std::move(inputs),
                   {"routing", TensorRole::free, shape, tensor::DType::f32}, attributes);
}

enum class ExpertPart : std::uint8_t { gate, up, down };

const char* name_of(ExpertPart part) {
    return part == ExpertPart::gate ? "gate" : part == ExpertPart::up ? "up" : "down";
}

/// Are the experts' weights stored [in, out]?
bool is_transposed(const MoeSpec& moe, ExpertPart part) {
    switch (moe.storage) {
        case ExpertStorage::separate:
        case ExpertStorage::rows: return false;
        case ExpertStorage::columns:
        case ExpertStorage::interleaved: return true;
        case ExpertStorage::flat: return part == ExpertPart::down;
    }
    return false;
}

bool is_joined(const MoeSpec& moe, ExpertPart part) {
    const bool separate = moe.storage == ExpertStorage::separate || moe.storage == ExpertStorage::flat;
    return !separate && part != ExpertPart::down;
}

/// Makes `p`, whose dimension `dim` has `own` indices, a part of the tensor that holds gate and up.
void join_gate_up(const MoeSpec& moe, ExpertPart part, int dim, std::int64_t own, Parameter& p) {
    const std::int64_t both = base::checked_mul(2, own);
    const std::int64_t second = part == ExpertPart::up ? 1 : 0;
    p.part = name_of(part);
    p.stored_shape[static_cast<std::size_t>(dim)] = both;
    p.view = moe.storage == ExpertStorage::interleaved ? FusedView{dim, own, 2, second, 1}
                                                       : FusedView{dim, 1, both, second * own, own};
}

std::string expert_tensor(const ModelSpec& model, ExpertPart part) {
    const TensorNames& n = model.names;
    if (part == ExpertPart::down) {
        return n.expert_down;
    }
    return is_joined(model.moe, part) ? n.expert_gate_up : part == ExpertPart::gate ? n.expert_gate : n.expert_up;
}

/// The weights of one linear of all experts, [X, out, in] or [X, in, out].
Parameter expert_weight(const ModelSpec& model, ExpertPart part) {
    const MoeSpec& moe = model.moe;
    const bool column = part != ExpertPart::down;
    const std::int64_t out = column ? moe.intermediate : model.hidden;
    const std::int64_t in = column ? model.hidden : moe.intermediate;
    const bool linear = moe.storage == ExpertStorage::separate || moe.storage == ExpertStorage::rows;
    Parameter weight;
    weight.name = expert_tensor(model, part) + (linear ? ".weight" : "");
    weight.kind = column ? ParameterKind::expert_column : ParameterKind::expert_row;
    weight.parallel = ParallelDim::experts;
    weight.transposed = is_transposed(moe, part);
    weight.shape = {moe.experts, weight.transposed ? in : out, weight.transposed ? out : in};
    weight.stored_shape = weight.shape;
    if (moe.storage == ExpertStorage::flat) {
        weight.stored_shape = {base::checked_mul(moe.experts, moe.intermediate), model.hidden};
    }
    if (is_stored_per_expert(weight)) {
        weight.stored_shape.erase(weight.stored_shape.begin());
    }
    if (is_joined(moe, part)) {
        join_gate_up(moe, part, weight.transposed ? 2 : 1, out, weight);
    }
    return weight;
}

Parameter expert_bias(const ModelSpec& model, ExpertPart part) {
    const bool column = part != ExpertPart::down;
    Parameter bias;
    bias.name = expert_tensor(model, part) + "_bias";
    bias.kind = column ? ParameterKind::expert_column_bias : ParameterKind::expert_row_bias;
    bias.parallel = ParallelDim::experts;
    bias.shape = {model.moe.experts, column ? model.moe.intermediate : model.hidden};
    bias.stored_shape = bias.shape;
    if (is_joined(model.moe, part)) {
        join_gate_up(model.moe, part, 1, bias.shape[1], bias);
    }
    return bias;
}

TensorId routed(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    constexpr ExpertPart parts[] = {ExpertPart::gate, ExpertPart::up, ExpertPart::down};
    std::vector<TensorId> inputs = {x, route(b, x, model)};
    for (const ExpertPart part : parts) {
        inputs.push_back(b.parameter(expert_weight(model, part)));
    }
    for (const ExpertPart part : parts) {
        if (model.moe.bias) {
            inputs.push_back(b.parameter(expert_bias(model, part)));
        }
    }
    OpAttributes attributes;
    attributes.activation = model.mlp.activation;
    attributes.routing = model.moe.routing;
    attributes.transposed = is_transposed(model.moe, ExpertPart::gate);
    attributes.transposed_down = is_transposed(model.moe, ExpertPart::down);
    attributes.biased = model.moe.bias;
    attributes.swiglu_limit = model.moe.swiglu_limit;
    const tensor::Shape shape = b.shape(x);
    return b.apply(OpKind::experts, "experts", Slot::experts, std::move(inputs),
                   {"experts.out", TensorRole::partial_hidden, shape}, attributes);
}

}  // namespace

LinearSpec down_projection(const ModelSpec& model) {
    return down_linear(model, layer_mlp(model));
}

TensorId build_mlp(BlockBuilder& block, TensorId x, const ModelSpec& model) {
    return dense(block, x, model, layer_mlp(model));
}

TensorId build_moe(BlockBuilder& block, TensorId x, const ModelSpec& model) {
    const TensorId sum = routed(block, x, model);
    if (model.moe.shared_intermediate == 0) {
        return sum;
    }
    TensorId shared = dense(block, x, model, shared_mlp(model));
    if (model.moe.shared_gate) {
        const TensorId gate = block.linear(
            x, small_linear("shared_router", Slot::shared_router, model.names.shared_router, model.hidden, 1));
        const tensor::Shape shape = block.shape(shared);
        shared = block.apply(OpKind::gate_rows, "shared_gate", Slot::shared_router, {shared, gate},
                             {"shared_gate.out", TensorRole::partial_hidden, shape});
    }
    return block.add(sum, shared, "add_shared", TensorRole::partial_hidden);
}

}  // namespace shardplan::model
