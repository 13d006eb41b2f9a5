#include "plan/weight_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/checked.h"
#include "plan/pipeline.h"

namespace shardplan::plan {
namespace {

using tensor::DType;

/// Of the model's parameters: matrices of parallel linears that nothing but linears reads.
std::vector<bool> may_be_int8(const model::Graph& graph) {
    std::vector<bool> result;
    for (const model::Parameter& parameter : graph.parameters) {
        const bool linear =
            parameter.kind == model::ParameterKind::column_linear || parameter.kind == model::ParameterKind::row_linear;
        result.push_back(linear && parameter.shape.size() == 2);
    }
    for (const model::Block& block : graph.blocks) {
        for (const model::Op& op : block.ops) {
            for (const model::TensorId input : op.inputs) {
                const model::TensorInfo& tensor = block.tensors[static_cast<std::size_t>(input)];
                if (tensor.kind == model::TensorKind::parameter && op.kind != model::OpKind::linear) {
                    result[static_cast<std::size_t>(tensor.parameter)] = false;
                }
            }
        }
    }
    return result;
}

std::int64_t bytes_of(const tensor::Shape& shape, DType dtype, bool transposed) {
    const std::int64_t elements = tensor::byte_count(shape, dtype);
    return dtype != DType::i8
               ? elements
               : base::checked_add(elements, base::checked_mul(shape[transposed ? 1 : 0], tensor::size_of(DType::f32)));
}

void set_dtype(const model::Graph& graph, StoredTensor& stored, DType dtype) {
    const bool transposed = graph.parameters[static_cast<std::size_t>(stored.parameter)].transposed;
    stored.dtype = dtype;
    stored.bytes = bytes_of(stored.shape, dtype, transposed);
    stored.bytes_per_device = bytes_of(stored.local_shape, dtype, transposed);
}

/// The stored weights that the linears of a step multiply with; empty where it is no linear, or one is not used as it
/// is stored.
WeightGroup group_of(const BlockPlan& block, const model::Block& graph, const ComputeStep& step, bool& transposed) {
    WeightGroup group;
    std::vector<int> ops = step.fused_ops;
    if (step.kind == ComputeKind::op) {
        ops = {step.op};
    } else if (step.kind != ComputeKind::fused_linear) {
        return group;
    }
    for (const int index : ops) {
        const model::Op& op = graph.ops[static_cast<std::size_t>(index)];
        if (op.kind != model::OpKind::linear) {
            continue;
        }
        const auto weight = std::find_if(step.inputs.begin(), step.inputs.end(), [&](ValueId input) {
            return block.values[static_cast<std::size_t>(input)].tensor == op.inputs[1];
        });
        if (weight == step.inputs.end() ||
            block.values[static_cast<std::size_t>(*weight)].kind != ValueKind::parameter) {
            return {};
        }
        group.push_back(block.values[static_cast<std::size_t>(*weight)].stored);
        transposed = op.attributes.transposed;
    }
    return group;
}

/// A group with a member that is used otherwise makes its other members plain too.
void erase_plain(std::map<WeightGroup, bool>& groups, std::set<int>& plain) {
    const auto has_plain = [&](const WeightGroup& group) {
        return std::any_of(group.begin(), group.end(), [&](int stored) { return plain.contains(stored); });
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto it = groups.begin(); it != groups.end();) {
            if (has_plain(it->first)) {
                plain.insert(it->first.begin(), it->first.end());
                it = groups.erase(it);
                changed = true;
            } else {
                ++it;
            }
        }
    }
}

}  // namespace

std::map<WeightGroup, bool> prepared_groups(const Plan& plan) {
    std::map<WeightGroup, bool> groups;
    std::set<int> plain;                       // used by something else than one group of weights
    std::map<int, const WeightGroup*> key_of;  // keys of a map stay where they are
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
        const BlockPlan& block = plan.blocks[b];
        for (const Step& step : block.steps) {
            const WeightGroup* key = nullptr;
            bool transposed = false;
            if (step.compute) {
                const WeightGroup group = group_of(block, plan.graph.blocks[b], *step.compute, transposed);
                key = group.empty() ? nullptr : &groups.try_emplace(group, transposed).first->first;
            }
            for (const ValueId input :
                 step.compute ? step.compute->inputs : std::vector<ValueId>{step.collective->input}) {
                const Value& value = block.values[static_cast<std::size_t>(input)];
                if (value.kind != ValueKind::parameter) {
                    continue;
                }
                const bool weight = key != nullptr && std::find(key->begin(), key->end(), value.stored) != key->end();
                if (!weight || key_of.try_emplace(value.stored, key).first->second != key) {
                    plain.insert(value.stored);
                }
            }
        }
    }
    erase_plain(groups, plain);
    return groups;
}

void choose_weight_formats(Plan& plan) {
    const std::vector<bool> eligible = may_be_int8(plan.graph);
    for (StoredTensor& stored : plan.stored) {
        if (stored.kind == StoredKind::parameter && eligible[static_cast<std::size_t>(stored.parameter)]) {
            set_dtype(plan.graph, stored, DType::i8);
        }
    }
}

void settle_weight_formats(Plan& plan) {
    choose_weight_formats(plan);  // lowering again may use other weights in place
    std::set<int> kept;
    for (const auto& [group, transposed] : prepared_groups(plan)) {
        if (std::all_of(group.begin(), group.end(),
                        [&](int stored) { return plan.stored[static_cast<std::size_t>(stored)].dtype == DType::i8; })) {
            kept.insert(group.begin(), group.end());
        }
    }
    for (std::size_t i = 0; i < plan.stored.size(); ++i) {
        if (plan.stored[i].dtype == DType::i8 && !kept.contains(static_cast<int>(i))) {
            set_dtype(plan.graph, plan.stored[i], plan.graph.workload.dtype);
        }
    }
    for (BlockPlan& block : plan.blocks) {
        for (Value& value : block.values) {
            if (value.kind == ValueKind::parameter && value.stored >= 0) {
                const StoredTensor& stored = plan.stored[static_cast<std::size_t>(value.stored)];
                value.dtype = stored.dtype;
                value.local_bytes = stored.bytes_per_device;
            }
        }
    }
    count_stored_memory(plan);
}

void check_kept_experts(const Plan& plan, diag::Diagnostics& diagnostics) {
    std::set<std::string> names;
    double kept = 0.0;
    double all = 0.0;
    for (const StoredTensor& stored : plan.stored) {
        if (stored.kind != StoredKind::parameter) {
            continue;
        }
        const double count =
            static_cast<double>(tensor::element_count(stored.shape)) * static_cast<double>(stored.layers.size());
        all += count;
        const model::ParameterKind kind = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)].kind;
        if (kind == model::ParameterKind::expert_column || kind == model::ParameterKind::expert_row) {
            names.insert(stored.name);
            kept += count;
        }
    }
    if (!names.empty()) {
        diagnostics.report(
            "SP5006",
            fmt::format("weight_dtype int8 leaves the weights of experts, {:.0f} % of all, in {}: {}",
                        100.0 * kept / all, tensor::to_string(plan.graph.workload.dtype), fmt::join(names, ", ")),
            "/backend/weight_dtype", "leave weight_dtype out where the other linears are not worth their rounding");
    }
}

void check_any_int8(const Plan& plan, diag::Diagnostics& diagnostics) {
    const bool any = std::any_of(plan.stored.begin(), plan.stored.end(),
                                 [](const StoredTensor& stored) { return stored.dtype == DType::i8; });
    if (!any) {
        diagnostics.report("SP5006",
                           "weight_dtype int8 changes nothing: no weight is multiplied as it is stored; each linear's "
                           "is gathered before use, or kept in another form",
                           "/backend/weight_dtype",
                           "leave weight_dtype out, or cut the linears over tensor-parallel axes only (no fsdp)");
    }
}

std::string weight_format_note(const Plan& plan) {
    const std::vector<bool> eligible = may_be_int8(plan.graph);
    std::int64_t kept = 0;
    std::vector<std::string> others;
    for (const StoredTensor& stored : plan.stored) {
        kept += stored.dtype == DType::i8 ? 1 : 0;
        if (stored.kind == StoredKind::parameter && stored.dtype != DType::i8 &&
            eligible[static_cast<std::size_t>(stored.parameter)]) {
            others.push_back(stored.part.empty() ? stored.name : fmt::format("{} ({})", stored.name, stored.part));
        }
    }
    const std::string_view dtype = tensor::to_string(plan.graph.workload.dtype);
    std::string note = fmt::format(
        "weight_dtype int8: {} weights of linears are 8 bit integers with an f32 scale for each output channel of a "
        "device's own part; norms, embeddings (and a head tied to them), router, experts, projections into latents and "
        "matrices absorbed by heads stay {}",
        kept, dtype);
    if (!others.empty()) {
        note +=
            fmt::format("; so do weights that are gathered before use, or multiplied together with one that stays: {}",
                        fmt::join(others, ", "));
    }
    return note;
}

}  // namespace shardplan::plan
