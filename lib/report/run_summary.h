// What a run is judged by, as plain values: the result against the unsharded model, and what was predicted next to what
// was counted. The executor's caller fills it in; report knows nothing of execution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardplan::report {

/// A prediction of the plan and what the run counted.
struct Prediction {
    std::int64_t predicted = 0;
    std::int64_t counted = 0;
    bool equal() const { return predicted == counted; }
};

struct CollectiveCount {
    std::string kind;  ///< "all-gather", ...
    Prediction calls;  ///< of one rank in one step of the model
    Prediction bytes;  ///< on the wire, all ranks together
    /// Exchanges whose sizes depend on the data: the prediction is for balanced experts, `most` for the worst routing,
    /// `routed` follows from the routing of the unsharded model, where it is known.
    std::optional<std::int64_t> most = std::nullopt;
    std::optional<std::int64_t> routed = std::nullopt;

    /// As predicted; or, where the data decide, as routed and within the worst case.
    bool holds() const {
        const bool bytes_hold =
            most ? bytes.counted <= *most && bytes.counted == routed.value_or(bytes.counted) : bytes.equal();
        return calls.equal() && bytes_hold;
    }
};

struct MemoryCount {
    std::string category;  ///< "parameters", "cache", "activations", "communication"
    Prediction bytes;      ///< of the rank with the most
};

struct StepTime {
    std::string kind;  ///< "matmul", "attention", "all-reduce", ...
    std::int64_t calls = 0;
    double seconds = 0.0;
};

struct VerifyResult {
    bool passed = false;
    double max_abs = 0.0;                   ///< largest |sharded - unsharded|
    double max_rel = 0.0;                   ///< largest relative to the unsharded value
    double rms_rel = 0.0;                   ///< root of the mean squared error over that of the squared values
    std::string tolerance;                  ///< the rule in words: "rms_rel <= 1.0e-05"
    std::vector<std::int64_t> worst_index;  ///< of max_abs in the logits
    double expected = 0.0;                  ///< value of the unsharded model there
    double actual = 0.0;
    std::int64_t elements = 0;
    std::int64_t routing_ties = 0;  ///< choices of experts at near ties that the unsharded model took over
    /// Not 0: bf16 alone moves the unsharded model's logits by so much (relative rms), and the comparison is with that
    /// of f32 activations.
    double own_rms = 0.0;
};

/// Greedy generation over the sharded cache.
struct Generated {
    std::vector<std::vector<std::int32_t>> ids;  ///< per sequence
    std::optional<std::int64_t> mismatches;      ///< ids the unsharded model would not have chosen, if it was asked
    std::optional<std::int64_t> changed_by_rounding = std::nullopt;  ///< ids that of the weights before int8 would not
    std::int64_t count() const {
        std::int64_t total = 0;
        for (const auto& sequence : ids) {
            total += std::ssize(sequence);
        }
        return total;
    }
};

/// Where a rank runs.
struct RankBinding {
    std::string host;
    std::string cores;  ///< that it may use: "0-3"
    std::int64_t threads = 1;
    friend bool operator==(const RankBinding&, const RankBinding&) = default;
};

struct RunSummary {
    std::string job;
    std::string mesh;  ///< "dp=2, tp=4 (8 devices)"
    std::string provider;
    std::string kernels;  ///< "onednn", "reference"
    std::string plan_hash;
    std::int64_t ranks = 1;
    std::int64_t threads = 1;              ///< of the rank with the most
    std::vector<RankBinding> binding;      ///< of each rank
    bool oversubscribed = false;           ///< more threads than cores on some host
    std::optional<VerifyResult> verify;    ///< with int8 weights against the unsharded model of the rounded weights
    std::optional<VerifyResult> rounding;  ///< only with int8 weights: against that of the weights before; not required
    std::optional<Generated> generated;
    std::vector<CollectiveCount> collectives;
    std::vector<MemoryCount> memory;
    std::int64_t kernel_scratch_bytes = 0;  ///< what kernels allocate beside the plan's memory
    std::int64_t resident_bytes = 0;        ///< most that a rank's process held; 0 = unknown
    std::int64_t planned_bytes = 0;         ///< of the rank with the most
    double outside_seconds = 0.0;           ///< of one step of the model, in none of its steps
    std::vector<StepTime> times;            ///< of rank 0, one step of the model
    double step_seconds = 0.0;              ///< of one step of the model: the mean, of a repeated one the median
    double mean_step_seconds = 0.0;
    double step_flops = 0.0;      ///< of one step of the model, all ranks
    std::int64_t step_bytes = 0;  ///< weights and cache that one step reads from memory, all ranks; 0 = unknown
    double tokens_per_second = 0.0;
    std::vector<std::string> notes;  ///< "ranks > cores: times are not comparable", ...

    /// Every prediction was counted exactly.
    bool predictions_hold() const;
    /// Predictions hold and the result, where it was checked, passed.
    bool passed() const;
};

}  // namespace shardplan::report
