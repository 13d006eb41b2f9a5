// Runs the plan of one rank, step by step, again and again. Memory follows the plan: every value is allocated at the
// step that defines it and freed after its last use; parameters and caches live as long as the executor.
// Collective: all ranks of the groups construct and call it in the same order. Exceptions of kernels and communicators
// pass through; the caller ends the other ranks. Contradictions within the plan throw std::logic_error.
#pragma once

#include <span>
#include <vector>

#include "comm/groups.h"
#include "exec/buffer.h"
#include "exec/parameter_store.h"
#include "exec/schedule.h"
#include "exec/tokens.h"
#include "exec/weights.h"
#include "kernels/kernels.h"

namespace shardplan::exec {

/// Time of one kind of step, summed over calls.
struct StepTime {
    Timer timer;
    std::int64_t calls = 0;
    double seconds = 0.0;
};

/// The part of the logits [b, s, v] that a rank holds.
struct LogitsBlock {
    tensor::ConstView values;
    std::vector<base::Interval> ranges;
    bool first_replica = true;  ///< no lower rank holds the same part
};

class Executor {
public:
    /// Loads parameters and allocates caches. plan, groups (on plan.mesh.refined()), kernels and allocator must outlive
    /// it; weights are only used here.
    Executor(const plan::Plan& plan, comm::Groups& groups, const kernels::Kernels& kernels, const WeightSource& weights,
             Allocator& allocator);

    /// One step of the model. `ids`: the whole batch, the same on all ranks, as long as the workload's queries.
    /// first_positions: per sequence the position of its first token = the tokens its cache holds.
    /// Throws std::invalid_argument when sizes or ids do not fit or the cache is too short.
    void run(const TokenBatch& ids, std::span<const std::int64_t> first_positions);
    /// All sequences at the same position.
    void run(const TokenBatch& ids, std::int64_t first_position);

    /// This rank's part of a cache: Plan::stored[stored] of its `instance`-th layer.
    tensor::ConstView cache(std::size_t stored, std::size_t instance) const;

    /// Of the last run; valid until the next.
    LogitsBlock logits() const;

    /// One entry per kind of step in the plan, in order of first appearance.
    std::vector<StepTime> times() const;
    void reset_times();

private:
    struct Frame;

    void check_input(const TokenBatch& ids, std::span<const std::int64_t> first_positions) const;
    void allocate_caches();
    void run_block(const model::BlockUse& use, const TokenBatch& ids, std::span<const std::int64_t> first_positions);
    void enter_block(const model::BlockUse& use, const TokenBatch& ids, Frame& frame);
    void allocate(Frame& frame, plan::ValueId value);
    void run_loop(Frame& frame, std::size_t first, std::size_t end, std::span<const std::int64_t> first_positions);
    void run_step(Frame& frame, std::size_t step, std::span<const std::int64_t> first_positions);

    const plan::Plan& plan_;
    comm::Groups& groups_;
    const kernels::Kernels& kernels_;
    Allocator& allocator_;
    Schedule schedule_;
    ParameterStore parameters_;
    std::vector<std::vector<Buffer>> caches_;  ///< per stored tensor, per instance
    Buffer carried_;                           ///< output of the block that ran last
    tensor::View carried_view_;
    std::vector<StepTime> times_;
};

}  // namespace shardplan::exec
