#include "plan/sequence_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"

namespace shardplan::plan {

using mesh::AxisList;

SequenceAxes sequence_axes(const model::Op& op, const model::Block& block, ActivationSpecs& asks) {
    if (op.kind != model::OpKind::attention || op.attributes.from_cache) {
        return {};
    }
    const auto layout_of = [&](std::size_t input) {
        const model::TensorInfo& tensor = block.tensors[static_cast<std::size_t>(op.inputs[input])];
        return asks.ask(tensor.role, tensor.shape).layout;
    };
    const partition::Layout queries = layout_of(0);
    const partition::Layout keys = layout_of(1);
    if (queries.rank < 3 || keys.rank < 3) {
        return {};
    }
    return {queries[1], keys[1], queries[2]};
}

const model::Op* sequence_parallel_attention(const model::Block& block, ActivationSpecs& asks) {
    for (const model::Op& op : block.ops) {
        if (!sequence_axes(op, block, asks).shared().empty()) {
            return &op;
        }
    }
    return nullptr;
}

std::string refusal(CpCommType type, const SequenceAxes& axes, std::int64_t heads, const RefinedMesh& mesh) {
    const auto names = [&](const AxisList& list) { return fmt::format("{}", fmt::join(mesh.names(list), ", ")); };
    const mesh::AxisSet shared = axes.shared();
    if (type == CpCommType::p2p && !(shared == axes.keys.set())) {
        return fmt::format(
            "a ring over the keys' axes ({}) needs queries that are cut over all of them, they are over {}",
            names(axes.keys), names(axes.queries));
    }
    const std::int64_t group = mesh.refined().size(shared);
    const std::int64_t tensor = mesh.refined().size(axes.heads);
    if (type == CpCommType::a2a && heads % (tensor * group) != 0) {
        return fmt::format("the {} query heads would be cut over {} devices ({} for heads, {} for the sequence)", heads,
                           tensor * group, tensor, group);
    }
    return "";
}

bool is_way(CpCommType type, const SequenceAxes& axes, const model::OpRule& rule, const Candidate& candidate) {
    const mesh::AxisSet shared = axes.shared();
    if (shared.empty() || type == CpCommType::automatic) {
        return true;
    }
    const model::DimFactor& bearer = rule.output[type == CpCommType::a2a ? 2 : 1];
    return candidate.factor_axes[static_cast<std::size_t>(bearer.factor)].set().includes(shared) &&
           statistical_axes(rule, candidate).empty();
}

partition::Layout heads_for_sequence(const SequenceAxes& axes) {
    partition::Layout layout = partition::Layout::replicated(4);
    layout[2] = axes.heads;
    for (int i = 0; i < axes.queries.size(); ++i) {
        if (axes.keys.set().contains(axes.queries[i])) {
            layout[2].push_back(axes.queries[i]);
        }
    }
    return layout;
}

std::int64_t ring_passes(const SequenceAxes& axes, std::int64_t window, std::int64_t length, const TokenOrder& order,
                         const mesh::Mesh& mesh) {
    const std::int64_t n = mesh.size(axes.keys);
    if (window <= 0 || !order.plain() || !(axes.queries == axes.keys)) {
        return n - 1;
    }
    // The first query of a block sees window - 1 keys before it.
    return std::min(n - 1, base::ceil_div(window - 1, length / n));
}

}  // namespace shardplan::plan
