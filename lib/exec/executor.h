// Runs the plan of one rank, step by step, again and again. Memory follows the plan: every value has its place in the
// arena, which is allocated once, and counts as used from the step that defines it to its last use; parameters and
// caches live as long as the executor. Nothing is looked up or allocated from step to step.
// Collective: all ranks of the groups construct and call it in the same order. Exceptions of kernels and communicators
// pass through; the caller ends the other ranks. Contradictions within the plan throw std::logic_error.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "comm/groups.h"
#include "exec/arena.h"
#include "exec/buffer.h"
#include "exec/parameter_store.h"
#include "exec/schedule.h"
#include "exec/tokens.h"
#include "exec/trace.h"
#include "exec/use_table.h"
#include "exec/weights.h"
#include "kernels/kernels.h"
#include "plan/pipeline.h"

namespace shardplan::exec {

/// Time of one kind of step, summed over calls.
struct StepTime {
    Timer timer;
    std::int64_t calls = 0;
    double seconds = 0.0;
};

/// The part of the logits [b, s, v] that a rank holds; none in any but the last stage of a pipeline.
struct LogitsBlock {
    tensor::ConstView values;
    std::vector<base::Interval> ranges;  ///< empty where there are no logits
    bool first_replica = true;           ///< no lower rank holds the same part
    std::int64_t vocab = 0;              ///< logits of this id and those behind it are padding
    /// Ids of the part that are not padding: the first so many of each row.
    std::int64_t width() const { return std::clamp<std::int64_t>(vocab - ranges[2].begin, 0, ranges[2].size()); }
};

class Executor {
public:
    /// Loads parameters and allocates caches. plan, groups (on plan.mesh.refined()), kernels and allocator must outlive
    /// it; weights are only used here.
    Executor(const plan::Plan& plan, comm::Groups& groups, const kernels::Kernels& kernels, const WeightSource& weights,
             Allocator& allocator);

    /// One step of the model, of which this rank computes its stage: what the stage before hands on it waits for.
    /// `ids`: the whole batch, the same on all ranks, as long as the workload's queries. first_positions: per sequence
    /// the position of its first token = the tokens its cache holds. Throws std::invalid_argument when sizes or ids do
    /// not fit or the cache is too short.
    void run(const TokenBatch& ids, std::span<const std::int64_t> first_positions);
    /// All sequences at the same position.
    void run(const TokenBatch& ids, std::int64_t first_position);

    /// This rank's part of a cache: Plan::stored[stored] of its `instance`-th layer.
    tensor::ConstView cache(std::size_t stored, std::size_t instance) const;

    /// Of the last run; valid until the next.
    LogitsBlock logits() const;

    /// Called with the local part of every routing that is computed, and what it holds of the batch and its tokens.
    using RoutingWatcher =
        std::function<void(int layer, const tensor::ConstView& routing, std::span<const base::Interval> ranges)>;
    void watch_routing(RoutingWatcher watcher) { routing_watcher_ = std::move(watcher); }

    /// Called with every routing that is computed, before it is watched: it may change the logits and call `route`.
    using RoutingGuide = std::function<void(int layer, const tensor::View& logits, const tensor::View& routing,
                                            const std::function<void()>& route)>;
    void guide_routing(RoutingGuide guide) { routing_guide_ = std::move(guide); }

    /// From now on runs are recorded in `trace`, which must outlive them; null: no longer.
    void record(Trace* trace) { trace_ = trace; }

    /// One entry per kind of step in the plan, in order of first appearance.
    std::vector<StepTime> times() const;
    /// Of all runs, in no step: time that the executor itself takes.
    double outside_seconds() const;
    void reset_times();

private:
    struct Frame;

    bool is_first() const { return stage_.first == 0; }
    bool is_last() const { return stage_.end == static_cast<int>(plan_.sequence.size()); }
    void receive_hidden();
    void send_hidden();
    void check_input(const TokenBatch& ids, std::span<const std::int64_t> first_positions) const;
    void allocate_caches();
    void run_block(int use, const TokenBatch& ids, std::span<const std::int64_t> first_positions);
    void enter_block(const TokenBatch& ids, Frame& frame);
    void begin_life(Frame& frame, plan::ValueId value);
    void end_life(Frame& frame, plan::ValueId value);
    void drop_output();
    void count_time(std::size_t timer, const TraceEvent& event, Trace::Clock::time_point start);
    void run_loop(Frame& frame, std::size_t first, std::size_t end, std::span<const std::int64_t> first_positions);
    void run_joined(Frame& frame, std::size_t first, std::size_t end, std::span<const std::int64_t> first_positions);
    void compute(Frame& frame, std::size_t step, std::span<const std::int64_t> first_positions);
    void run_step(Frame& frame, std::size_t step, std::span<const std::int64_t> first_positions);
    void show_routing(const Frame& frame, const plan::ComputeStep& step, const std::function<void()>& route) const;

    const plan::Plan& plan_;
    comm::Groups& groups_;
    const kernels::Kernels& kernels_;
    Allocator& allocator_;
    std::int64_t stage_index_;
    const plan::Stage& stage_;
    Schedule schedule_;
    ParameterStore parameters_;
    std::vector<std::vector<Buffer>> caches_;  ///< per stored tensor, per instance
    Arena arena_;
    std::vector<std::vector<tensor::View>> views_;  ///< per block, per value
    std::vector<UseTable> uses_;                    ///< of the stage
    bool has_output_ = false;
    tensor::View output_;  ///< of the block that ran last, in the arena
    std::vector<StepTime> times_;
    double run_seconds_ = 0.0;
    RoutingWatcher routing_watcher_;
    RoutingGuide routing_guide_;
    Trace* trace_ = nullptr;
};

}  // namespace shardplan::exec
