#include "plan/fuse.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardplan::plan {
namespace {

using model::OpKind;
using model::Slot;

constexpr std::size_t none = static_cast<std::size_t>(-1);

class SlotFuser {
public:
    SlotFuser(BlockPlan& block, const model::Block& graph, const backend::BackendSpecProvider& provider, Slot slot)
        : block_(block), graph_(graph), provider_(provider), slot_(slot) {}

    void run() {
        find_linears();
        if (linears_.empty()) {
            return;
        }
        find_norm();
        name_modules();
        if (linears_.size() == 1 && !norm_is_adjacent_) {
            return;
        }
        build_step();
        reorder();
    }

private:
    const model::Op& op_of(const ComputeStep& step) const { return graph_.ops[static_cast<std::size_t>(step.op)]; }
    ComputeStep& compute(std::size_t i) { return *block_.steps[i].compute; }

    bool is_op(std::size_t i, OpKind kind) const {
        const auto& step = block_.steps[i].compute;
        return step && step->kind == ComputeKind::op && op_of(*step).kind == kind;
    }

    void find_linears() {
        for (std::size_t i = 0; i < block_.steps.size(); ++i) {
            if (!is_op(i, OpKind::linear) || op_of(compute(i)).slot != slot_) {
                continue;
            }
            const ComputeStep& step = compute(i);
            if (!linears_.empty() && step.inputs[0] != compute(linears_.front()).inputs[0]) {
                continue;
            }
            std::vector<std::size_t> chain;
            if (weight_chain(step.inputs[1], i, chain)) {
                linears_.push_back(i);
                moved_.insert(chain.begin(), chain.end());
            }
        }
    }

    /// The collectives that make `value` from a stored parameter; false when it comes from anything else.
    bool weight_chain(ValueId value, std::size_t before, std::vector<std::size_t>& chain) const {
        const ValueKind kind = block_.values[static_cast<std::size_t>(value)].kind;
        if (kind == ValueKind::parameter) {
            return true;
        }
        for (std::size_t i = before; kind == ValueKind::gathered && i-- > 0;) {
            const auto& collective = block_.steps[i].collective;
            if (collective && collective->output == value) {
                chain.push_back(i);
                return weight_chain(collective->input, i, chain);
            }
        }
        return false;
    }

    std::vector<std::size_t> readers(ValueId value) const {
        std::vector<std::size_t> result;
        for (std::size_t i = 0; i < block_.steps.size(); ++i) {
            const Step& step = block_.steps[i];
            const bool reads = step.compute ? std::find(step.compute->inputs.begin(), step.compute->inputs.end(),
                                                        value) != step.compute->inputs.end()
                                            : step.collective->input == value;
            if (reads) {
                result.push_back(i);
            }
        }
        return result;
    }

    /// The norm whose result only these linears use, directly or through collectives.
    void find_norm() {
        ValueId value = compute(linears_.front()).inputs[0];
        if (readers(value) != linears_) {
            return;
        }
        norm_is_adjacent_ = true;
        for (std::size_t i = linears_.front(); i-- > 0;) {
            const Step& step = block_.steps[i];
            if (step.collective && step.collective->output == value) {
                value = step.collective->input;
                norm_is_adjacent_ = false;
                if (readers(value).size() != 1) {
                    return;
                }
            } else if (step.compute && step.compute->outputs.front() == value) {
                norm_is_adjacent_ = norm_is_adjacent_ && is_op(i, OpKind::norm);
                if (op_of(*step.compute).kind == OpKind::norm) {
                    norm_ = i;
                }
                break;
            }
        }
        norm_is_adjacent_ = norm_is_adjacent_ && norm_ != none;
    }

    void name_modules() {
        if (norm_ == none) {
            return;
        }
        const std::string module(backend::module_of(provider_, op_of(compute(linears_.front())), true));
        for (const std::size_t i : linears_) {
            compute(i).module = module;
        }
        for (Step& step : block_.steps) {
            if (step.compute && step.compute->op == compute(norm_).op) {
                step.compute->module = module;
            }
        }
    }

    void build_step() {
        const ComputeStep& first = compute(linears_.front());
        fused_.kind = ComputeKind::fused_linear;
        fused_.op = first.op;
        fused_.module = first.module;
        fused_.inputs = {first.inputs[0]};
        if (norm_is_adjacent_) {
            fused_.inputs = compute(norm_).inputs;
            fused_.fused_ops.push_back(compute(norm_).op);
            removed_.insert(norm_);
        }
        std::vector<ValueId> biases;
        for (const std::size_t i : linears_) {
            const ComputeStep& linear = compute(i);
            fused_.inputs.push_back(linear.inputs[1]);
            fused_.fused_ops.push_back(linear.op);
            fused_.flops += linear.flops;
            fused_.outputs.push_back(take_bias(linear.outputs.front(), biases));
            removed_.insert(i);
        }
        fused_.inputs.insert(fused_.inputs.end(), biases.begin(), biases.end());
        fused_.scratch_bytes = scratch_bytes();
    }

    /// The normalised input, from which all parts are made.
    std::int64_t scratch_bytes() const {
        const auto x = static_cast<std::size_t>(fused_.inputs.front());
        return norm_is_adjacent_ ? block_.values[x].local_bytes : 0;
    }

    /// When the linear's result is only read by its bias_add, that becomes part of the step. Returns the result.
    ValueId take_bias(ValueId output, std::vector<ValueId>& biases) {
        const std::vector<std::size_t> users = readers(output);
        if (users.size() != 1 || !is_op(users.front(), OpKind::bias_add)) {
            return output;
        }
        const std::size_t i = users.front();
        const ComputeStep& bias = compute(i);
        std::vector<std::size_t> chain;
        if (!weight_chain(bias.inputs[1], i, chain)) {
            return output;
        }
        moved_.insert(chain.begin(), chain.end());
        removed_.insert(i);
        biases.push_back(bias.inputs[1]);
        fused_.fused_ops.push_back(bias.op);
        return bias.outputs.front();
    }

    /// The fused step takes the place of the first linear; the gathers of all weights come before it.
    void reorder() {
        std::vector<Step> steps;
        const std::size_t place = linears_.front();
        for (std::size_t i = 0; i < block_.steps.size(); ++i) {
            if (i == place) {
                for (const std::size_t m : moved_) {
                    if (m > place) {
                        steps.push_back(block_.steps[m]);
                    }
                }
                steps.push_back({std::move(fused_), std::nullopt, {}});
            }
            const bool moved_up = i > place && moved_.contains(i);
            if (!removed_.contains(i) && !moved_up) {
                steps.push_back(std::move(block_.steps[i]));
            }
        }
        block_.steps = std::move(steps);
    }

    BlockPlan& block_;
    const model::Block& graph_;
    const backend::BackendSpecProvider& provider_;
    Slot slot_;
    std::vector<std::size_t> linears_;  ///< steps, ascending, reading the same value
    std::set<std::size_t> moved_;       ///< gathers of weights and biases
    std::set<std::size_t> removed_;
    std::size_t norm_ = none;
    bool norm_is_adjacent_ = false;
    ComputeStep fused_;
};

}  // namespace

void fuse_steps(BlockPlan& block, const model::Block& graph, const backend::BackendSpecProvider& provider) {
    for (const Slot slot : {Slot::qkv, Slot::kv_down, Slot::q_up, Slot::kv_up, Slot::fc1}) {
        SlotFuser(block, graph, provider, slot).run();
    }
}

}  // namespace shardplan::plan
