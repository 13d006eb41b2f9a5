#include "plan/plan_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "plan/fuse.h"
#include "plan/in_place.h"
#include "plan/join.h"
#include "plan/memory.h"
#include "plan/sequence_parallel.h"

namespace shardplan::plan {
namespace {

/// Of equals the first is taken.
constexpr std::array ways = {CpCommType::all_gather, CpCommType::a2a, CpCommType::p2p};

BlockPlan plan_in_way(int block, LoweringContext context, CpCommType type, diag::Diagnostics& diagnostics) {
    const std::size_t errors = diagnostics.error_count();
    context.cp_comm_type = type;
    BlockPlan plan = lower_block(block, context, diagnostics);
    const model::Block& graph = context.graph.blocks[static_cast<std::size_t>(block)];
    if (context.provider.fuse_layernorm_and_linear()) {
        fuse_steps(plan, graph, context.provider);
    }
    if (diagnostics.error_count() == errors) {
        work_in_place(plan, graph);
        join_steps(plan, graph, context.provider);
        schedule_memory(plan);
    }
    return plan;
}

std::int64_t wire_bytes(const BlockPlan& plan) {
    std::int64_t bytes = 0;
    for (const Step& step : plan.steps) {
        if (step.collective) {
            bytes = base::checked_add(bytes, base::checked_mul(step.collective->wire_bytes, step.times));
        }
    }
    return bytes;
}

/// A block with sequence-parallel attention in each of its ways.
class Alternatives {
public:
    Alternatives(int block, const LoweringContext& context, const model::Op& attention)
        : block_(block),
          context_(context),
          axes_(sequence_axes(attention, context.graph.blocks[static_cast<std::size_t>(block)], context.asks)) {
        choice_.axes = context.mesh.names(axes_.keys);
        choice_.group_size = context.mesh.refined().size(axes_.keys);
        for (const CpCommType type : ways) {
            add(type);
        }
    }

    std::optional<BlockPlan> best(Goal goal) {
        const CpCommType asked = context_.job.options.cp_comm_type;
        const Candidate* best = nullptr;
        for (const Candidate& candidate : candidates_) {
            const bool allowed = asked == CpCommType::automatic || asked == candidate.way.type;
            if (allowed && (best == nullptr || key(candidate.way, goal) < key(best->way, goal))) {
                best = &candidate;
            }
        }
        if (best == nullptr) {
            return std::nullopt;
        }
        choice_.type = best->way.type;
        choice_.reason = asked != CpCommType::automatic ? "options.cp_comm_type asks for it" : why(best->way, goal);
        BlockPlan plan = best->plan;
        plan.attention = choice_;
        return plan;
    }

private:
    using Way = AttentionChoice::Way;
    struct Candidate {
        Way way;
        BlockPlan plan;
    };

    static std::pair<std::int64_t, std::int64_t> key(const Way& way, Goal goal) {
        return goal == Goal::memory ? std::pair(way.peak_bytes, way.wire_bytes)
                                    : std::pair(way.wire_bytes, way.peak_bytes);
    }

    void add(CpCommType type) {
        Way way{type, 0, 0, refusal(type, axes_, context_.job.model.attention.heads, context_.mesh)};
        diag::Diagnostics problems;
        if (way.refusal.empty()) {
            BlockPlan plan = plan_in_way(block_, context_, type, problems);
            if (problems.has_errors()) {
                way.refusal = "no placement of an operation was found";
            } else {
                way.wire_bytes = wire_bytes(plan);
                way.peak_bytes = plan.arena_bytes;
                candidates_.push_back({way, std::move(plan)});
            }
        }
        choice_.ways.push_back(std::move(way));
    }

    std::string why(const Way& best, Goal goal) const {
        if (candidates_.size() == 1) {
            return "the only way";
        }
        if (goal == Goal::memory) {
            return "the least memory: device_memory does not suffice for the way with the fewest bytes";
        }
        const auto count = [&](auto equal) {
            return std::count_if(candidates_.begin(), candidates_.end(),
                                 [&](const Candidate& candidate) { return equal(candidate.way); });
        };
        if (count([&](const Way& way) { return way.wire_bytes == best.wire_bytes; }) == 1) {
            return "the fewest bytes on the wire";
        }
        const bool least = count([&](const Way& way) { return key(way, goal) == key(best, goal); }) == 1;
        return least ? "of the ways with the fewest bytes the one with the least memory"
                     : "of the ways with the fewest bytes and the least memory the one with the fewest steps";
    }

    int block_;
    const LoweringContext& context_;
    SequenceAxes axes_;
    AttentionChoice choice_;
    std::vector<Candidate> candidates_;
};

}  // namespace

BlockPlan plan_block(int block, const LoweringContext& context, Goal goal, diag::Diagnostics& diagnostics) {
    const model::Block& graph = context.graph.blocks[static_cast<std::size_t>(block)];
    if (const model::Op* attention = sequence_parallel_attention(graph, context.asks)) {
        if (auto plan = Alternatives(block, context, *attention).best(goal)) {
            return std::move(*plan);
        }
    }
    return plan_in_way(block, context, context.job.options.cp_comm_type, diagnostics);
}

}  // namespace shardplan::plan
