// The whole of `run`: executes a plan on all ranks of a world, compares its logits with those of the unsharded model on
// rank 0, and puts predicted and counted traffic and memory next to each other. Prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/cores.h"
#include "exec/compare.h"
#include "exec/counts.h"
#include "exec/executor.h"
#include "kernels/kernels.h"
#include "plan/plan.h"
#include "tensor/checkpoint.h"

namespace shardplan::exec {

struct RunOptions {
    std::uint64_t seed = 0;       ///< of weights and tokens
    std::uint64_t plan_hash = 0;  ///< must be the same on all ranks
    kernels::KernelSet kernels = kernels::KernelSet::onednn;
    std::optional<tensor::Checkpoint> checkpoint;  ///< instead of seeded weights
    std::optional<TokenBatch> tokens;              ///< instead of seeded ids: tokens_needed(plan, options) per sequence
    std::int64_t steps =
        4;  ///< decode, insert: steps after the prompt, limited by the cache; prefill: runs, each of all chunks
    /// Decode only: feed back the most likely token instead of given ones; steps = tokens to generate, of which the
    /// first follows from the prompt's last. Tokens are then only those of the prompts.
    bool generate = false;
    /// decode, insert: of each sequence; empty = sequence_length for all.
    std::vector<std::int64_t> prompt_lengths;
    /// > 0: only measures. After one pass to warm up, so many passes: prefill, the sequence; decode, the first token
    /// behind a prompt that is not fed, over empty caches of its length. @pre neither verify nor generate
    std::int64_t repeat = 0;
    bool verify = true;
    std::string save_weights;  ///< directory; empty = no
    std::string logits_file;   ///< empty = no
    int threads = 0;           ///< of each rank's kernels; 0 = its share of the cores (comm/cores.h)
    bool poison = false;       ///< fill new memory with NaN
    bool trace = false;        ///< record the measured steps
    /// Told what begins, on every rank: "weights", "step 3 of 8", "the unsharded model".
    std::function<void(std::string_view)> progress = {};
};

/// With int8 weights: the run beside the unsharded model of the weights before they were rounded.
struct RoundingReport {
    Comparison comparison;              ///< with int8_tolerance_of, what to expect of rounding; not required
    std::int64_t routing_ties = 0;      ///< as RunReport's
    std::int64_t token_mismatches = 0;  ///< counted, not required
};

/// What a run found. Numbers are over all ranks and known to all of them, unless they say otherwise.
struct RunReport {
    bool passed = false;                     ///< everything below is as it should be; the same on all ranks
    std::vector<diag::Diagnostic> problems;  ///< of checkpoint and tokens; then nothing was run
    std::string kernels;                     ///< Kernels::describe()
    std::string transport;                   ///< how collectives travelled on this rank, comm::describe
    std::int64_t ranks = 1;
    std::int64_t executed_steps = 0;
    std::int64_t measured_steps = 0;  ///< the last ones
    bool verified = false;
    Comparison comparison;  ///< with the unsharded model of the weights as the ranks have them; on rank 0
    std::optional<RoundingReport> rounding;            ///< only with int8 weights; on rank 0
    std::vector<std::vector<std::int32_t>> generated;  ///< per sequence, on rank 0
    /// Choices of experts that the unsharded model took over from the sharded run, as rounding decided them (bf16); on
    /// rank 0. See routing_ties.h.
    std::int64_t routing_ties = 0;
    std::int64_t token_mismatches = 0;  ///< generated ids that the unsharded model would not have chosen; on rank 0
    std::vector<TrafficCount> traffic;  ///< over all executed steps
    std::vector<MemoryCount> memory;
    std::int64_t scratch_bytes = 0;  ///< peak of kernel scratch, highest of the ranks
    /// Most that a rank's process held at once before the unsharded model was computed; 0 = unknown.
    std::int64_t resident_bytes = 0;
    std::vector<comm::RankCores> cores;          ///< of each rank
    std::vector<std::int64_t> threads;           ///< of each rank
    bool oversubscribed = false;                 ///< more threads than cores on some host
    std::vector<StepTime> times;                 ///< of the measured steps; each the highest of the ranks
    double outside_seconds = 0.0;                ///< of the measured steps, in none of `times`; highest of the ranks
    std::vector<double> step_seconds;            ///< per measured step, highest of the ranks
    std::vector<std::vector<TraceEvent>> trace;  ///< of the measured steps, per rank; on rank 0, when asked for
    double load_seconds = 0.0;
    double reference_seconds = 0.0;  ///< on rank 0
};

/// The longest of options.prompt_lengths within what the workload allows; without any, or in prefill, sequence_length.
std::int64_t longest_prompt(const plan::Plan& plan, const RunOptions& options);

/// Steps that will be measured: options.steps, in decode at most what the cache and a table of learned positions have
/// room for after the longest prompt.
std::int64_t measured_steps(const plan::Plan& plan, const RunOptions& options);

/// Tokens that are fed per sequence: the longest prompt's, in decode and insert also those of the measured steps. The
/// sequence_length that the reference plan needs.
std::int64_t tokens_needed(const plan::Plan& plan, const RunOptions& options);

/// Tokens per sequence that options.tokens must give: without those that will be generated.
std::int64_t tokens_given(const plan::Plan& plan, const RunOptions& options);

/// Prefill: the plan is run on the tokens and all logits are compared. Decode and insert: the prompt
/// (sequence_length tokens) is fed through the same plan, then the measured steps; every measured step's logits are
/// compared with the unsharded model's at these positions. Generating, its most likely tokens there must be the
/// generated ones (f32; in bf16 near ties may fall otherwise, which is counted): with equal tokens before, they are
/// what the unsharded model generates itself. int8 weights: the unsharded model has the integers times scales of all
/// ranks (rounded_weights.h), so that the tolerance is that of the dtype; in bf16 its weights are those products
/// rounded to bf16. What the rounding to int8 does is a second comparison, RunReport::rounding, on which nothing
/// depends: it is a matter of the weights, not of the sharding. `reference`: the same
/// model as prefill of tokens_needed() tokens without cache on a mesh of one device; only used on rank 0 when
/// options.verify. Collective. Throws where ranks hold different plans or the world has another size than the mesh;
/// exceptions on a single rank pass through, the caller must end the others.
RunReport run_and_verify(const plan::Plan& plan, const plan::Plan& reference, comm::World& world,
                         const RunOptions& options);

}  // namespace shardplan::exec
