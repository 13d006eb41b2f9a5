#include "exec/linear_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace shardplan::exec {
namespace {

using plan::ValueId;

/// The value of `tensor` among `values`; -1 if there is none.
ValueId find_value(const plan::BlockPlan& block, const std::vector<ValueId>& values, model::TensorId tensor) {
    const auto found = std::find_if(values.begin(), values.end(), [&](ValueId value) {
        return block.values[static_cast<std::size_t>(value)].tensor == tensor;
    });
    return found == values.end() ? -1 : *found;
}

ValueId need_value(const plan::BlockPlan& block, const std::vector<ValueId>& values, const model::Op& op,
                   model::TensorId tensor) {
    const ValueId value = find_value(block, values, tensor);
    if (value < 0) {
        throw std::logic_error(fmt::format("the step of {} in block {} lacks tensor {}", op.name, block.name, tensor));
    }
    return value;
}

void read_norm(const plan::BlockPlan& block, const plan::ComputeStep& step, const model::Op& op, LinearStep& linear) {
    linear.norm = &op;
    linear.x = need_value(block, step.inputs, op, op.inputs[0]);
    std::size_t next = 1;
    if (op.attributes.norm.has_weight) {
        linear.norm_weight = need_value(block, step.inputs, op, op.inputs[next++]);
    }
    if (op.attributes.norm.has_bias) {
        linear.norm_bias = need_value(block, step.inputs, op, op.inputs[next]);
    }
}

/// The bias_add among `ops` that follows the linear with this output.
const model::Op* find_bias(const std::vector<const model::Op*>& ops, model::TensorId output) {
    const auto found = std::find_if(ops.begin(), ops.end(), [&](const model::Op* op) {
        return op->kind == model::OpKind::bias_add && op->inputs[0] == output;
    });
    return found == ops.end() ? nullptr : *found;
}

LinearPart read_part(const plan::BlockPlan& block, const plan::ComputeStep& step, const model::Op& op,
                     const model::Op* bias) {
    LinearPart part;
    part.weight = need_value(block, step.inputs, op, op.inputs[1]);
    if (bias != nullptr) {
        part.bias = need_value(block, step.inputs, *bias, bias->inputs[1]);
    }
    part.output = need_value(block, step.outputs, op, bias != nullptr ? bias->output : op.output);
    return part;
}

}  // namespace

std::optional<LinearStep> read_linear_step(const plan::BlockPlan& block, const model::Block& graph,
                                           const plan::ComputeStep& step) {
    std::vector<const model::Op*> ops;
    if (step.kind == plan::ComputeKind::fused_linear) {
        for (const int op : step.fused_ops) {
            ops.push_back(&graph.ops[static_cast<std::size_t>(op)]);
        }
    } else if (step.kind == plan::ComputeKind::op) {
        ops.push_back(&graph.ops[static_cast<std::size_t>(step.op)]);
    }
    LinearStep linear;
    for (const model::Op* op : ops) {
        if (op->kind == model::OpKind::norm && step.kind == plan::ComputeKind::fused_linear) {
            read_norm(block, step, *op, linear);
        } else if (op->kind == model::OpKind::linear) {
            linear.transposed = op->attributes.transposed;
            if (linear.norm == nullptr) {
                linear.x = need_value(block, step.inputs, *op, op->inputs[0]);
            }
            linear.parts.push_back(read_part(block, step, *op, find_bias(ops, op->output)));
        }
    }
    if (linear.parts.empty()) {
        return std::nullopt;
    }
    return linear;
}

}  // namespace shardplan::exec
