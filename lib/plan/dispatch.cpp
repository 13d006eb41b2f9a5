#include "plan/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"

namespace shardplan::plan {

using base::checked_mul;
using mesh::AxisList;
using mesh::AxisSet;
using mesh::CollectiveKind;
using partition::Layout;
using tensor::DType;

namespace {

constexpr std::int64_t most_rows = std::int64_t{1} << 31;
constexpr std::int64_t routing_bytes = 4;
constexpr std::int64_t count_bytes = 8;

constexpr const char* dispatcher_module = "MoEAlltoAllTokenDispatcher";

}  // namespace

/// Of one device, and of its group.
struct Dispatch::Sizes {
    AxisList group;          ///< tokens are sent over these axes
    AxisList tokens;         ///< axes that cut the tokens, in the order of their dimensions
    std::int64_t n = 1;      ///< members of the group
    std::int64_t local = 0;  ///< tokens of a device
    std::int64_t parts = 1;  ///< devices with tokens of their own
    std::int64_t sent_room = 0;
    std::int64_t received_room = 0;
    std::int64_t leaving = 0;        ///< rows that leave their device, in one group, experts balanced
    std::int64_t worst_leaving = 0;  ///< the same for the worst routing
    std::int64_t experts = 0;        ///< of a device
};

struct Dispatch::Rows {
    ValueId rows = -1, routing = -1, tokens = -1, sent = -1, received = -1;
};

Dispatch::Dispatch(int op_index, const LoweringContext& context, BlockBuilder& builder, const model::OpRule& rule)
    : op_index_(op_index),
      context_(context),
      builder_(builder),
      op_(context.graph.blocks[static_cast<std::size_t>(builder.plan().block)].ops[static_cast<std::size_t>(op_index)]),
      rule_(rule),
      mesh_(context.mesh.refined()),
      batch_(rule.inputs[0][0].factor),
      sequence_(rule.inputs[0][1].factor),
      experts_(rule.inputs[2][0].factor) {
    stored_ = builder.value(builder.versions(op_.inputs[2]).front()).layout[0];
}

AxisSet Dispatch::token_axes(const Candidate& candidate) const {
    return candidate.factor_axes[static_cast<std::size_t>(batch_)].set() |
           candidate.factor_axes[static_cast<std::size_t>(sequence_)].set();
}

/// The axes of the experts that cut the tokens too, in the experts' order.
AxisList Dispatch::group_of(const Candidate& candidate) const {
    const AxisSet tokens = token_axes(candidate);
    AxisList group;
    for (int i = 0; i < stored_.size(); ++i) {
        if (tokens.contains(stored_[i])) {
            group.push_back(stored_[i]);
        }
    }
    return group;
}

/// Each axis of the experts cuts tokens, or experts alone (then the results are summed over it).
bool Dispatch::can_send(const Candidate& candidate) const {
    const AxisSet experts = candidate.factor_axes[static_cast<std::size_t>(experts_)].set();
    const AxisSet tokens = token_axes(candidate);
    const AxisSet stored = stored_.set() & mesh::nontrivial_axes(mesh_);
    return tokens.intersects(stored) && (tokens | experts).includes(stored) && stored.includes(experts);
}

void Dispatch::add_candidates(std::vector<Candidate>& candidates) const {
    if (context_.job.dispatcher == TokenDispatcher::all_gather) {
        return;
    }
    const std::size_t gathered = candidates.size();
    for (std::size_t i = 0; i < gathered; ++i) {
        if (!can_send(candidates[i])) {
            continue;
        }
        Candidate sent = candidates[i];
        sent.expert_axes = stored_;
        if (sizes_of(sent).received_room < most_rows) {
            candidates.push_back(std::move(sent));
        }
    }
}

Dispatch::Sizes Dispatch::sizes_of(const Candidate& candidate) const {
    Sizes s;
    s.group = group_of(candidate);
    s.n = mesh_.size(s.group);
    s.local = 1;
    for (const int factor : {batch_, sequence_}) {
        const AxisList& axes = candidate.factor_axes[static_cast<std::size_t>(factor)];
        s.local = checked_mul(s.local, rule_.factors[static_cast<std::size_t>(factor)].size / mesh_.size(axes));
        for (int i = 0; i < axes.size(); ++i) {
            s.tokens.push_back(axes[i]);
        }
    }
    s.parts = mesh_.size(s.tokens);
    const std::int64_t top_k = op_.attributes.routing.top_k;
    const std::int64_t copies = std::min(top_k, s.n);
    s.sent_room = checked_mul(s.local, copies);
    s.received_room = checked_mul(s.local, s.n);
    s.leaving = checked_mul(s.sent_room, s.n - 1);
    s.worst_leaving = checked_mul(s.received_room, std::min(top_k, s.n - 1));
    s.experts = rule_.factors[static_cast<std::size_t>(experts_)].size / mesh_.size(stored_);
    return s;
}

Layout Dispatch::input_layout(std::size_t i, const Candidate& candidate, Layout layout) const {
    constexpr std::size_t routing = 1;
    if (candidate.expert_axes.empty() || i < routing) {
        return layout;
    }
    if (i == routing) {  // the experts of a group's members need not lie side by side
        layout[2] = {};
    } else {
        layout[0] = candidate.expert_axes;
    }
    return layout;
}

void Dispatch::add_cost(const Candidate& candidate, Scored& scored) const {
    const bool sends = !candidate.expert_axes.empty();
    scored.unwanted = context_.job.dispatcher == TokenDispatcher::all_to_all && !sends ? 1 : 0;
    if (!sends) {
        return;
    }
    const Sizes s = sizes_of(candidate);
    const auto width = [&](model::TensorId id) {
        const model::TensorInfo& info = builder_.tensor(id);
        return static_cast<double>(checked_mul(info.shape.back(), tensor::size_of(info.dtype)));
    };
    const double returned = width(op_.output) / static_cast<double>(mesh_.size(scored.output[2]));
    const double row = width(op_.inputs[0]) + static_cast<double>(s.experts * routing_bytes) + returned;
    scored.bytes +=
        row * static_cast<double>(s.leaving) / static_cast<double>(s.n) + static_cast<double>((s.n - 1) * count_bytes);
    scored.collectives += 4;
}

void Dispatch::note(const Scored& scored) {
    if (scored.displaced == 0) {
        double& slot = scored.candidate.expert_axes.empty() ? gathered_ : sent_;
        slot = std::min(slot, scored.bytes);
    }
}

std::string Dispatch::reason(const Scored& best) const {
    const bool sends = !best.candidate.expert_axes.empty();
    if (std::isinf(sent_) && context_.job.dispatcher != TokenDispatcher::all_gather) {
        return "no device has tokens of its own: all-to-all would have nothing to send";
    }
    if (context_.job.dispatcher != TokenDispatcher::automatic) {
        return "as the job says";
    }
    const std::string copies =
        fmt::format("each token goes to {} of {} devices", op_.attributes.routing.top_k, mesh_.size(stored_));
    if (sends) {
        return fmt::format("{}, which moves fewer bytes than all of them would", copies);
    }
    return op_.attributes.routing.top_k < mesh_.size(stored_)
               ? "gathering the tokens moves no more bytes than sending them"
               : "each token has as many experts as there are devices: it would go to nearly all of them";
}

void Dispatch::record(const Scored& best) const {
    if (mesh_.size(stored_) == 1) {
        return;
    }
    DispatchUse use;
    use.op = op_.name;
    use.all_to_all = !best.candidate.expert_axes.empty();
    use.axes = context_.mesh.names(stored_);
    use.chosen_bytes = std::llround(best.bytes);
    const double other = use.all_to_all ? gathered_ : sent_;
    use.alternative_bytes = std::isinf(other) ? -1 : std::llround(other);
    use.reason = reason(best);
    builder_.plan().dispatches.push_back(std::move(use));
}

/// Sends rows over the group; `room` of them fit into the output.
ValueId Dispatch::exchange(ValueId rows, const char* name, std::int64_t room, ValueId sent, ValueId received,
                           const Sizes& sizes) {
    const Value in = builder_.value(rows);
    tensor::Shape shape = in.shape;
    shape[0] = checked_mul(room, sizes.parts);
    const ValueId out = builder_.add_auxiliary(op_.name + name, in.layout, shape, in.dtype);
    const std::int64_t row_bytes = in.local_bytes / std::max<std::int64_t>(in.local_shape[0], 1);
    CollectiveStep step;
    step.kind = CollectiveKind::all_to_all_v;
    step.axes = sizes.group;
    step.send_counts = sent;
    step.receive_counts = received;
    step.wire_bytes_total = mesh::group_wire_bytes(step.kind, sizes.n, row_bytes, sizes.leaving);
    step.worst_wire_bytes_total = mesh::group_wire_bytes(step.kind, sizes.n, row_bytes, sizes.worst_leaving);
    step.reason = "for " + op_.name;
    builder_.collective(std::move(step), rows, out);
    return out;
}

/// What the device sends, what it receives, and the numbers of both.
Dispatch::Rows Dispatch::emit_rows(const std::vector<ValueId>& inputs, const Sizes& sizes) {
    const Value x = builder_.value(inputs[0]);
    const auto value = [&](const char* name, std::int64_t rows, std::int64_t width, DType dtype) {
        tensor::Shape shape = {checked_mul(rows, sizes.parts)};
        if (width > 0) {
            shape.push_back(width);
        }
        Layout layout = Layout::replicated(static_cast<int>(shape.size()));
        layout[0] = sizes.tokens;
        return builder_.add_auxiliary(op_.name + name, layout, shape, dtype);
    };
    Rows r;
    const ValueId rows = value(".sent", sizes.sent_room, x.shape.back(), x.dtype);
    const ValueId routing = value(".sent.routing", sizes.sent_room, sizes.experts, DType::f32);
    r.tokens = value(".sent.tokens", sizes.sent_room, 0, DType::i32);
    r.sent = value(".sent.counts", sizes.n, 0, DType::i64);
    ComputeStep pack;
    pack.kind = ComputeKind::dispatch_tokens;
    pack.op = op_index_;
    pack.module = dispatcher_module;
    pack.inputs = {inputs[0], inputs[1]};
    pack.outputs = {rows, routing, r.tokens, r.sent};
    pack.axes = sizes.group;
    pack.expert_axes = stored_;
    builder_.compute(std::move(pack));
    r.received = value(".received.counts", sizes.n, 0, DType::i64);
    CollectiveStep counts;
    counts.kind = CollectiveKind::all_to_all;
    counts.axes = sizes.group;
    counts.reason = "for the sizes of " + op_.name;
    builder_.collective(std::move(counts), r.sent, r.received);
    r.rows = exchange(rows, ".received", sizes.received_room, r.sent, r.received, sizes);
    r.routing = exchange(routing, ".received.routing", sizes.received_room, r.sent, r.received, sizes);
    return r;
}

ValueId Dispatch::emit(const std::vector<ValueId>& inputs, const Scored& best, const std::string& module) {
    const Sizes sizes = sizes_of(best.candidate);
    const Rows received = emit_rows(inputs, sizes);
    const model::TensorInfo& out = builder_.tensor(op_.output);
    Layout layout = Layout::replicated(2);
    layout[0] = sizes.tokens;
    layout[1] = best.output[2];
    layout.pending = best.output.pending;
    const ValueId results = builder_.add_auxiliary(
        op_.name + ".results", layout, {checked_mul(sizes.received_room, sizes.parts), out.shape.back()}, out.dtype);
    ComputeStep experts;
    experts.kind = ComputeKind::dispatched_experts;
    experts.op = op_index_;
    experts.module = module;
    experts.grouped = backend::experts_are_grouped(context_.provider);
    experts.flops = best.flops;
    experts.inputs = {received.rows, received.routing, received.received};
    experts.inputs.insert(experts.inputs.end(), inputs.begin() + 2, inputs.end());
    experts.outputs = {results};
    builder_.compute(std::move(experts));
    const ValueId returned = exchange(results, ".returned", sizes.sent_room, received.received, received.sent, sizes);
    const ValueId output = builder_.add_value(op_.output, best.output, ValueKind::activation);
    ComputeStep combine;
    combine.kind = ComputeKind::combine_tokens;
    combine.op = op_index_;
    combine.module = dispatcher_module;
    combine.inputs = {returned, received.tokens, received.sent};
    combine.outputs = {output};
    builder_.compute(std::move(combine));
    return output;
}

}  // namespace shardplan::plan
