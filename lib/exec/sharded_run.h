// The sharded side of `run`: all steps of one plan on one rank, with the counts and times that come of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "exec/decode_feed.h"
#include "exec/executor.h"
#include "exec/logits.h"
#include "exec/routing_ties.h"
#include "exec/verify.h"
#include "plan/plan.h"

namespace shardplan::exec {

class ShardedRun {
public:
    /// All must outlive it. Collective, as all functions are.
    ShardedRun(const plan::Plan& plan, comm::World& world, const RunOptions& options);

    /// Returns the logits [b, measured positions, v] on rank 0 when options want them; fills in the sharded side of
    /// `report`. Generating, it writes the generated ids into `tokens`.
    FloatTensor run(TokenBatch& tokens, const WeightSource& weights, RunReport& report);

    /// What the run's tokens chose, on rank 0, where the unsharded model may have to take it over. Collective.
    ChosenExperts chosen_experts() const;

private:
    void step(const TokenBatch& ids, std::span<const std::int64_t> first_positions, std::int64_t steps,
              RunReport& report);
    void watch_routing();
    bool wants_logits() const { return options_.verify || !options_.logits_file.empty(); }
    FloatTensor prefill(const TokenBatch& tokens, RunReport& report);
    FloatTensor decode(TokenBatch& tokens, RunReport& report);
    void begin_measuring(RunReport& report);
    void repeat(const TokenBatch& tokens, RunReport& report);
    /// Puts the logits of the last step into `whole` [b, length, v] on rank 0.
    void add_logits(std::int64_t first, std::int64_t length, FloatTensor& whole);
    void keep_generated(std::span<const std::int32_t> ids, RunReport& report) const;
    void collect(RunReport& report);

    const plan::Plan& plan_;
    comm::World& world_;
    const RunOptions& options_;
    Allocator allocator_;
    std::unique_ptr<kernels::Kernels> kernels_;
    std::unique_ptr<comm::Groups> groups_;
    std::unique_ptr<Executor> executor_;
    Trace trace_;
    std::vector<std::string> parts_;  ///< of the logits of the last step, for each micro-batch
    ChosenExperts chosen_;            ///< by this rank's tokens, if they are watched
    double copying_ = 0.0;            ///< seconds of the last step for logits and choices, which no step of the plan is
    std::int64_t first_sequence_ = 0;                ///< of the micro-batch that runs
    std::span<const std::int64_t> first_positions_;  ///< of its sequences
};

/// f32: only the order of sums differs from the unsharded model of the same (with int8, rounded) weights.
bool is_exact(const plan::Plan& plan);

/// Whether rounding can make experts of the sharded run and of an unsharded one that it is compared with differ.
bool rounds_routing(const plan::Plan& plan, const RunOptions& options);

/// The prompts of options, or of the workload, one length per sequence.
std::vector<std::int64_t> prompt_lengths(const plan::Plan& plan, const RunOptions& options);

/// What is fed to a plan whose step stands behind a cache.
DecodeFeed feed_of(const plan::Plan& plan, const RunOptions& options);

/// The position of the first token of each of `executed` steps, when all prompts are equally long.
std::vector<std::int64_t> step_positions(const plan::Plan& plan, const RunOptions& options, std::int64_t executed);

}  // namespace shardplan::exec
