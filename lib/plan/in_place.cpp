#include "plan/in_place.h"

#include <algorithm>
#include <vector>

#include "plan/arena.h"
#include "plan/memory.h"

namespace shardplan::plan {
namespace {

/// How many operands, from the first on, the kernel of an op may overwrite.
std::size_t overwritable(model::OpKind kind) {
    switch (kind) {
        case model::OpKind::add:
        case model::OpKind::glu: return 2;
        case model::OpKind::activation:
        case model::OpKind::bias_add:
        case model::OpKind::clip:
        case model::OpKind::gate_rows:
        case model::OpKind::rope:
        case model::OpKind::scale:
        case model::OpKind::softcap:
        case model::OpKind::temperature: return 1;
        default: return 0;
    }
}

std::vector<ValueId> overwritable_operands(const Step& step, const model::Block& graph) {
    if (step.loop != 0) {
        return {};
    }
    if (step.collective) {  // sums over all ranks are made in place
        const bool sum = step.collective->kind == mesh::CollectiveKind::all_reduce ||
                         step.collective->kind == mesh::CollectiveKind::all_reduce_max;
        return sum && step.collective->input != step.collective->output ? std::vector{step.collective->input}
                                                                        : std::vector<ValueId>{};
    }
    if (step.compute->kind != ComputeKind::op) {
        return {};
    }
    const std::size_t count = overwritable(graph.ops[static_cast<std::size_t>(step.compute->op)].kind);
    const std::vector<ValueId>& inputs = step.compute->inputs;
    return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(std::min(count, inputs.size()))};
}

class InPlace {
public:
    InPlace(BlockPlan& block, const model::Block& graph) : block_(block), graph_(graph), last_(last_steps(block)) {}

    void run() {
        for (std::size_t s = 0; s < block_.steps.size(); ++s) {
            const std::vector<ValueId> operands = overwritable_operands(block_.steps[s], graph_);
            if (operands.empty()) {
                continue;
            }
            const Step& step = block_.steps[s];
            const ValueId output = step.compute ? step.compute->outputs.front() : step.collective->output;
            if (value(output).alias_of >= 0 || value(output).kind != ValueKind::activation) {
                continue;
            }
            const ValueId owner = owner_to_take(operands, output, s);
            if (owner >= 0) {
                take(output, owner);
            }
        }
    }

private:
    Value& value(ValueId id) { return block_.values[static_cast<std::size_t>(id)]; }

    /// The memory of an operand that is needed for the last time; rather that of the block's input.
    ValueId owner_to_take(const std::vector<ValueId>& operands, ValueId output, std::size_t index) {
        ValueId taken = -1;
        for (const ValueId operand : operands) {
            const ValueId owner = memory_owner(block_, operand);
            const bool fits =
                value(owner).local_bytes == value(output).local_bytes && value(operand).dtype == value(output).dtype;
            const bool own = value(owner).kind == ValueKind::activation || owner == block_.input;
            const bool last = last_[static_cast<std::size_t>(owner)] == index;
            if (fits && own && last && (taken < 0 || owner == block_.input)) {
                taken = owner;
            }
        }
        return taken;
    }

    void take(ValueId output, ValueId owner) {
        for (Value& other : block_.values) {
            if (other.alias_of == output) {
                other.alias_of = owner;
            }
        }
        value(output).alias_of = owner;
        last_[static_cast<std::size_t>(owner)] = last_[static_cast<std::size_t>(output)];
    }

    BlockPlan& block_;
    const model::Block& graph_;
    std::vector<std::size_t> last_;
};

}  // namespace

void work_in_place(BlockPlan& block, const model::Block& graph) {
    InPlace(block, graph).run();
}

}  // namespace shardplan::plan
