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
    std::vector<TensorId> inputs = {
        b.linear(x, small_linear("router", Slot::router, model.names.router, model.hidden, moe.experts))};
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

/// The weights of one linear of all experts, [X, out, in]; `offset` >= 0: rows of a stacked tensor of 2 * out rows.
Parameter expert_weight(const ModelSpec& model, ParameterKind kind, const std::string& tensor, const char* part,
                        std::int64_t offset) {
    const bool column = kind == ParameterKind::expert_column;
    const std::int64_t out = column ? model.moe.intermediate : model.hidden;
    const std::int64_t in = column ? model.hidden : model.moe.intermediate;
    Parameter weight;
    weight.name = tensor + ".weight";
    weight.part = part;
    weight.kind = kind;
    weight.parallel = ParallelDim::experts;
    weight.shape = {model.moe.experts, out, in};
    weight.stored_shape = weight.shape;
    if (is_stored_per_expert(weight)) {
        weight.stored_shape.erase(weight.stored_shape.begin());
    }
    if (offset >= 0) {
        const std::int64_t rows = base::checked_mul(2, out);
        weight.stored_shape[1] = rows;
        weight.view = {1, 1, rows, offset, out};
    }
    return weight;
}

TensorId routed(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    const TensorNames& n = model.names;
    const auto column = ParameterKind::expert_column;
    const TensorId routing = route(b, x, model);
    const bool stacked = model.moe.stacked;
    const TensorId gate = b.parameter(stacked ? expert_weight(model, column, n.expert_gate_up, "gate", 0)
                                              : expert_weight(model, column, n.expert_gate, "", -1));
    const TensorId up =
        b.parameter(stacked ? expert_weight(model, column, n.expert_gate_up, "up", model.moe.intermediate)
                            : expert_weight(model, column, n.expert_up, "", -1));
    const TensorId down = b.parameter(expert_weight(model, ParameterKind::expert_row, n.expert_down, "", -1));
    OpAttributes attributes;
    attributes.activation = model.mlp.activation;
    attributes.routing = model.moe.routing;
    const tensor::Shape shape = b.shape(x);
    return b.apply(OpKind::experts, "experts", Slot::experts, {x, routing, gate, up, down},
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
