#include "plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "plan/attention_steps.h"
#include "plan/block_builder.h"
#include "plan/candidates.h"
#include "plan/dispatch.h"
#include "plan/parameter_specs.h"
#include "plan/scored.h"
#include "plan/sequence_parallel.h"

namespace shardplan::plan {

using mesh::AxisList;
using mesh::AxisSet;
using mesh::CollectiveKind;
using model::Op;
using model::OpKind;
using partition::Layout;

namespace {

class OpLowering {
public:
    OpLowering(int op_index, const LoweringContext& context, BlockBuilder& builder)
        : context_(context),
          block_(context.graph.blocks[static_cast<std::size_t>(builder.plan().block)]),
          op_index_(op_index),
          op_(block_.ops[static_cast<std::size_t>(op_index)]),
          rule_(model::rule_of(op_, block_)),
          mesh_(context.mesh.refined()),
          sequence_(sequence_axes(op_, block_, context.asks)),
          builder_(builder) {}

    /// False when no candidate is admissible.
    bool run() {
        const Ask none;
        const model::TensorInfo& out = builder_.tensor(op_.output);
        ask_ = out.kind == model::TensorKind::activation ? &context_.asks.ask(out.role, out.shape) : &none;
        if (ask_->strength == Ask::Strength::enforce && is_transit()) {
            soft_ = *ask_;
            soft_.strength = Ask::Strength::hint;
            ask_ = &soft_;
        }
        choose();
        const bool found = !std::isinf(best_.bytes);
        if (found) {
            emit();
        }
        return found;
    }

private:
    /// Queries and keys on their way through rope and norms: only what attention reads is constrained (1a.4).
    bool is_transit() const {
        const model::TensorRole role = builder_.tensor(op_.output).role;
        if (role != model::TensorRole::query && role != model::TensorRole::key) {
            return false;
        }
        for (const Op& other : block_.ops) {
            const bool reads = other.kind == OpKind::attention || other.kind == OpKind::cache_write;
            for (const model::TensorId input : other.inputs) {
                if (reads && input == op_.output) {
                    return false;
                }
            }
        }
        return true;
    }

    void choose() {
        std::vector<SourceLayout> sources;
        AxisSet passable = rule_.linear ? mesh::nontrivial_axes(mesh_) : AxisSet{};
        for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
            AxisSet pending = rule_.passes(i) ? AxisSet{} : passable;
            for (const ValueId id : builder_.versions(op_.inputs[i])) {
                sources.push_back({&rule_.inputs[i], builder_.value(id).layout});
                pending = pending | builder_.value(id).layout.pending;
            }
            passable = passable & pending;
        }
        if (ask_->strength != Ask::Strength::none) {
            sources.push_back({&rule_.output, ask_->layout});
        }
        if (cache_output()) {
            sources.push_back({&rule_.output, builder_.value(builder_.versions(op_.output).front()).layout});
        }
        if (context_.cp_comm_type == CpCommType::a2a && !sequence_.shared().empty()) {
            sources.push_back({&rule_.output, heads_for_sequence(sequence_)});
        }
        std::vector<Candidate> candidates = enumerate_candidates(rule_, sources, passable, mesh_);
        if (op_.kind == OpKind::experts) {
            dispatch_ = std::make_unique<Dispatch>(op_index_, context_, builder_, rule_);
            dispatch_->add_candidates(candidates);
        }
        for (Candidate& candidate : candidates) {
            consider(std::move(candidate));
        }
    }

    bool cache_output() const { return builder_.tensor(op_.output).kind == model::TensorKind::cache; }

    bool ring() const { return context_.cp_comm_type == CpCommType::p2p && !sequence_.shared().empty(); }

    std::int64_t ring_passes() const {
        const std::int64_t length = builder_.tensor(op_.inputs[1]).shape[1];
        return plan::ring_passes(sequence_, op_.attributes.window, length, context_.token_order, mesh_);
    }

    /// What input `i` must be; the keys and values of a ring stay where they are.
    Layout needed_layout(std::size_t i, const Candidate& candidate) const {
        Layout needed = input_layout(i, candidate);
        needed.pending = rule_.passes(i) ? candidate.passed_pending : AxisSet{};
        if ((i == 1 || i == 2) && ring()) {
            needed[1] = sequence_.keys;
        }
        return needed;
    }

    void ring_cost(Scored& scored) const {
        for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
            const model::TensorInfo& keys = builder_.tensor(op_.inputs[i]);
            const auto bytes = static_cast<double>(ring_passes() * tensor::byte_count(keys.shape, keys.dtype));
            scored.bytes += bytes / static_cast<double>(shard_count(scored.inputs[i], mesh_));
            scored.collectives += static_cast<int>(ring_passes());
        }
    }

    /// Whether a candidate that moves `more` bytes than now known can neither be the best nor change what is noted.
    bool hopeless(const Scored& scored, double more, const double* use) const {
        const bool worse = best_.displaced <= scored.displaced && best_.cost() < scored.cost() + more;
        return worse && !dispatch_ && (use == nullptr || scored.bytes + more >= *use);
    }

    void consider(Candidate candidate) {
        if (!is_way(context_.cp_comm_type, sequence_, rule_, candidate)) {
            return;
        }
        Scored scored;
        scored.bytes = 0.0;
        scored.output = operand_layout(rule_.output, candidate, builder_.tensor(op_.output).shape, mesh_);
        scored.output.pending = contracted_axes(rule_, candidate) | candidate.passed_pending;
        if (op_.kind == OpKind::attention) {
            scored.output.pending = scored.output.pending | statistical_axes(rule_, candidate).set();
        }
        if (!is_consistent(scored.output)) {
            return;
        }
        scored.displaced = displaced_weights(candidate);
        scored.flops = local_flops(rule_, candidate, mesh_);
        double* const use = weight_use(candidate);
        double least = 0.0;
        for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
            scored.inputs.push_back(needed_layout(i, candidate));
            const Layout& needed = scored.inputs.back();
            if (!is_consistent(needed) || !divides(needed, builder_.tensor(op_.inputs[i]).shape, mesh_)) {
                return;
            }
            least += builder_.least_bytes(op_.inputs[i], needed);
        }
        if (hopeless(scored, least - 1.0, use) || !output_cost(scored)) {  // a byte for rounding
            return;
        }
        statistics_cost(candidate, scored);
        if (dispatch_) {
            dispatch_->add_cost(candidate, scored);
        }
        for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
            if (hopeless(scored, 0.0, use)) {
                return;
            }
            const BlockBuilder::Nearest nearest = builder_.nearest(op_.inputs[i], scored.inputs[i]);
            scored.bytes += nearest.bytes;
            scored.collectives += nearest.collectives;
        }
        if (ring()) {
            ring_cost(scored);
        }
        scored.work = local_work(rule_, candidate, mesh_);
        scored.candidate = std::move(candidate);
        if (use != nullptr) {
            *use = std::min(*use, scored.bytes);
        }
        if (dispatch_) {
            dispatch_->note(scored);
        }
        if (better(scored, best_)) {
            best_ = std::move(scored);
        }
    }

    Layout input_layout(std::size_t i, const Candidate& candidate) const {
        const Layout layout = operand_layout(rule_.inputs[i], candidate, builder_.tensor(op_.inputs[i]).shape, mesh_);
        return dispatch_ ? dispatch_->input_layout(i, candidate, layout) : layout;
    }

    double output_bytes() const {
        const model::TensorInfo& out = builder_.tensor(op_.output);
        return static_cast<double>(tensor::byte_count(out.shape, out.dtype));
    }

    bool output_cost(Scored& scored) const {
        if (cache_output()) {
            return scored.output == builder_.value(builder_.versions(op_.output).front()).layout;
        }
        Layout target = scored.output;
        target.pending = {};
        if (ask_->strength != Ask::Strength::none) {
            target = ask_->layout;
        } else if (target == scored.output) {
            return divides(scored.output, builder_.tensor(op_.output).shape, mesh_);
        }
        const partition::ReshardPath* path = context_.resharder.path(scored.output, target);
        scored.bytes += path->wire_per_byte * output_bytes();
        scored.collectives += path->collectives;
        return divides(scored.output, builder_.tensor(op_.output).shape, mesh_);
    }

    void statistics_cost(const Candidate& candidate, Scored& scored) const {
        const AxisList axes = statistical_axes(rule_, candidate);
        if (axes.empty()) {
            return;
        }
        const auto n = static_cast<double>(mesh_.size(axes));
        const bool attention = op_.kind == OpKind::attention;
        const model::TensorInfo& out = builder_.tensor(op_.output);
        const auto rows = static_cast<double>(tensor::element_count(out.shape) / out.shape.back());
        const double shards = static_cast<double>(shard_count(scored.output, mesh_)) / (attention ? 1.0 : n);
        scored.bytes += 2.0 * (n - 1.0) / n * rows / shards * (attention ? 8.0 : 16.0);
        scored.collectives += attention ? 2 : 1;
    }

    /// Weights placed by their role stay cut over their parallel axes where any candidate allows it: those axes are
    /// there to spread the weight and its work. Only storage axes are gathered.
    int displaced_weights(const Candidate& candidate) const {
        if (context_.job.rule_source != partition::RuleSource::derived) {
            return 0;
        }
        int displaced = 0;
        for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
            const model::TensorInfo& info = builder_.tensor(op_.inputs[i]);
            if (info.kind != model::TensorKind::parameter) {
                continue;
            }
            const Layout needed = input_layout(i, candidate);
            const Layout& stored = builder_.value(builder_.versions(op_.inputs[i]).front()).layout;
            const auto& parameter = context_.graph.parameters[static_cast<std::size_t>(info.parameter)];
            const std::vector<int> dims = parallel_dimensions(parameter);
            const bool stays =
                std::all_of(dims.begin(), dims.end(), [&](int d) { return needed[d].starts_with(stored[d]); });
            displaced += stays ? 0 : 1;
        }
        return displaced;
    }

    /// A linear's weight with storage axes: the fewest bytes so far with it gathered, or in place, as the candidate
    /// has.
    double* weight_use(const Candidate& candidate) {
        if (op_.kind != OpKind::linear) {
            return nullptr;
        }
        const Layout& stored = builder_.value(builder_.versions(op_.inputs[1]).front()).layout;
        const bool cut = mesh_.size(stored.dims[op_.attributes.transposed ? 0 : 1]) > 1;
        return !cut ? nullptr : needed_layout(1, candidate) == stored ? &stationary_ : &gathered_;
    }

    void emit() {
        std::vector<ValueId> inputs;
        for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
            const BlockBuilder::Nearest nearest = builder_.nearest(op_.inputs[i], best_.inputs[i]);
            inputs.push_back(builder_.reshard(nearest.value, best_.inputs[i], "for " + op_.name));
        }
        const AxisList statistics = statistical_axes(rule_, best_.candidate);
        ValueId output = -1;
        if (!statistics.empty() && op_.kind == OpKind::norm) {
            output = emit_split_norm(inputs, statistics);
        } else if (!statistics.empty()) {
            output = emit_merged_attention(attention_steps(), inputs, statistics);
        } else if (!best_.candidate.expert_axes.empty()) {
            output = dispatch_->emit(inputs, best_, module());
        } else if (ring()) {
            output = emit_ring_attention(attention_steps(), inputs, sequence_.keys, ring_passes());
        } else {
            output = emit_plain(inputs);
        }
        if (ask_->strength == Ask::Strength::enforce) {
            builder_.reshard(output, ask_->layout, "as its spec asks");
        }
        record_weight_use(inputs);
        if (dispatch_) {
            dispatch_->record(best_);
        }
    }

    void record_weight_use(const std::vector<ValueId>& inputs) {
        if (std::isinf(stationary_) && std::isinf(gathered_)) {
            return;
        }
        WeightUse use;
        use.op = op_.name;
        use.gathered = builder_.value(inputs[1]).kind != ValueKind::parameter;
        use.chosen_bytes = std::llround(best_.bytes);
        const double other = use.gathered ? stationary_ : gathered_;
        use.alternative_bytes = std::isinf(other) ? -1 : std::llround(other);
        builder_.plan().weight_uses.push_back(use);
    }

    std::string module() const { return std::string(backend::module_of(context_.provider, op_, false)); }

    ComputeStep step(ComputeKind kind, std::vector<ValueId> inputs, std::vector<ValueId> outputs) const {
        ComputeStep result;
        result.kind = kind;
        result.op = op_index_;
        result.module = module();
        result.inputs = std::move(inputs);
        result.outputs = std::move(outputs);
        result.grouped = dispatch_ && backend::experts_are_grouped(context_.provider);
        return result;
    }

    ValueId emit_plain(const std::vector<ValueId>& inputs) {
        if (cache_output()) {
            const ValueId cache = builder_.versions(op_.output).front();
            builder_.compute(step(ComputeKind::op, inputs, {cache}));
            return cache;
        }
        const ValueId output = builder_.add_value(op_.output, best_.output, ValueKind::activation);
        if (op_.kind == OpKind::split_heads || op_.kind == OpKind::merge_heads) {
            builder_.make_alias(output, inputs.front());
        }
        ComputeStep compute = step(ComputeKind::op, inputs, {output});
        compute.flops = best_.flops;
        builder_.compute(std::move(compute));
        return output;
    }

    ValueId emit_split_norm(const std::vector<ValueId>& inputs, const AxisList& axes) {
        const Value x = builder_.value(inputs.front());
        Layout layout = x.layout;
        layout[layout.rank - 1] = {};
        layout.pending = axes.set();
        tensor::Shape shape = x.shape;
        shape.back() = 2;
        const ValueId partial = builder_.add_auxiliary(op_.name + ".statistics", layout, shape, tensor::DType::f64);
        builder_.compute(step(ComputeKind::norm_statistics, {inputs.front()}, {partial}));
        const ValueId whole = builder_.reduce(partial, CollectiveKind::all_reduce, axes, "for " + op_.name);
        const ValueId output = builder_.add_value(op_.output, best_.output, ValueKind::activation);
        std::vector<ValueId> operands = {inputs.front(), whole};
        operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
        builder_.compute(step(ComputeKind::norm_apply, operands, {output}));
        return output;
    }

    AttentionSteps attention_steps() const {
        return {builder_, op_, step(ComputeKind::op, {}, {}), best_.output, best_.flops};
    }

    const LoweringContext& context_;
    const model::Block& block_;
    int op_index_;
    const Op& op_;
    model::OpRule rule_;
    const mesh::Mesh& mesh_;
    SequenceAxes sequence_;  ///< of attention
    BlockBuilder& builder_;
    const Ask* ask_ = nullptr;
    Ask soft_;
    Scored best_;
    std::unique_ptr<Dispatch> dispatch_;  ///< experts only
    double stationary_ = std::numeric_limits<double>::infinity();
    double gathered_ = std::numeric_limits<double>::infinity();
};

}  // namespace

BlockPlan lower_block(int block, const LoweringContext& context, diag::Diagnostics& diagnostics) {
    const model::Block& graph_block = context.graph.blocks[static_cast<std::size_t>(block)];
    BlockBuilder builder(block, context);
    for (std::size_t i = 0; i < graph_block.ops.size(); ++i) {
        if (!OpLowering(static_cast<int>(i), context, builder).run()) {
            diagnostics.report("SP6001", fmt::format("no placement of {} in block {} fits the mesh",
                                                     graph_block.ops[i].name, graph_block.name));
            return builder.take();
        }
    }
    builder.plan().output = builder.finish();
    return builder.take();
}

}  // namespace shardplan::plan
