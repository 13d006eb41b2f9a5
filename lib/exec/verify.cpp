#include "exec/verify.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>

#include "exec/checkpoint_weights.h"
#include "exec/exact_reference.h"
#include "exec/greedy.h"
#include "exec/rounded_weights.h"
#include "exec/routed_traffic.h"
#include "exec/routing_ties.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"
#include "exec/sharded_run.h"

namespace shardplan::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// Positions that a decode run can use: those of the cache, and of a table of learned positions.
std::int64_t positions_in(const plan::Plan& plan) {
    std::int64_t positions = std::numeric_limits<std::int64_t>::max();
    for (const plan::StoredTensor& stored : plan.stored) {
        if (stored.kind == plan::StoredKind::cache) {
            positions = std::min(positions, stored.shape[1]);
        }
    }
    const model::ModelSpec& model = plan.graph.model;
    return model.position_rows > 0 ? std::min(positions, model.position_rows - model.position_offset) : positions;
}

std::vector<diag::Diagnostic> check_lengths(const plan::Plan& plan, const RunOptions& options) {
    const model::Workload& workload = plan.graph.workload;
    diag::Diagnostics problems;
    const std::int64_t shortest = workload.mode == model::Mode::insert ? 0 : 1;  // an insert can begin a sequence
    const auto bad = [&](std::int64_t length) { return length < shortest || length > workload.sequence_length; };
    const std::vector<std::int64_t>& lengths = options.prompt_lengths;
    if (!lengths.empty() && !workload.continues()) {
        problems.report("SP7002", "prompts of different lengths need a job in decode or insert mode");
    } else if (!lengths.empty() && std::ssize(lengths) != workload.total_batch()) {
        problems.report("SP7002", fmt::format("{} prompt lengths for {} sequences (workload.batch_size)",
                                              lengths.size(), workload.total_batch()));
    }
    if (const auto found = std::find_if(lengths.begin(), lengths.end(), bad); found != lengths.end()) {
        problems.report("SP7002", fmt::format("a prompt of {} tokens: lengths are {} ... sequence_length {}", *found,
                                              shortest, workload.sequence_length));
    }
    if (options.generate && problems.all().empty() && measured_steps(plan, options) < options.steps) {
        problems.report(
            "SP7002",
            fmt::format("{} tokens cannot be generated after a prompt of {}: there is room for {} positions",
                        options.steps, longest_prompt(plan, options), positions_in(plan)),
            "", fmt::format("generate {} or fewer", measured_steps(plan, options)));
    }
    return problems.all();
}

std::vector<diag::Diagnostic> check_tokens(const plan::Plan& plan, const TokenBatch& tokens, std::int64_t needed) {
    const model::Workload& workload = plan.graph.workload;
    diag::Diagnostics problems;
    if (tokens.batch != workload.total_batch() || tokens.length < needed ||
        std::ssize(tokens.ids) != tokens.batch * tokens.length) {
        problems.report("SP7002", fmt::format("{} sequences of {} tokens, the run needs {} sequences of {}",
                                              tokens.batch, tokens.length, workload.total_batch(), needed));
        return problems.all();
    }
    const auto outside = std::find_if(tokens.ids.begin(), tokens.ids.end(),
                                      [&](std::int32_t id) { return id < 0 || id >= plan.graph.model.vocab; });
    if (outside != tokens.ids.end()) {
        const std::int64_t index = outside - tokens.ids.begin();
        problems.report("SP7002", fmt::format("sequence {}, token {}: id {} is not in [0, {})", index / tokens.length,
                                              index % tokens.length, *outside, plan.graph.model.vocab));
    }
    return problems.all();
}

std::unique_ptr<WeightSource> make_weights(const RunOptions& options, const model::ModelSpec& model) {
    if (options.checkpoint) {
        return std::make_unique<CheckpointWeights>(*options.checkpoint, model);
    }
    return std::make_unique<SeededWeights>(options.seed, model);
}

/// The experts that the unsharded model chooses, and those that the sharded run chose.
struct Routing {
    RoutingLog log;
    RoutingTies ties;
};

/// Logits of the unsharded model at the positions that were measured. guided: it takes over choices of experts that
/// the tolerance allows to fall otherwise.
FloatTensor reference_logits(const plan::Plan& plan, const plan::Plan& reference, const TokenBatch& tokens,
                             const WeightSource& weights, const RunOptions& options, bool guided, Routing& routing) {
    const auto world = comm::make_self_world();
    const auto groups = world->groups(reference.mesh.refined());
    const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
    Allocator allocator;
    Executor executor(reference, *groups, *kernels, weights, allocator);
    executor.watch_routing([&](int layer, const tensor::ConstView& weights, std::span<const base::Interval>) {
        routing.log.add(layer, weights);
    });
    if (guided) {
        executor.guide_routing(
            [&](int layer, const tensor::View& scores, const tensor::View& weights,
                const std::function<void()>& route) { routing.ties.settle(layer, scores, weights, route); });
    }
    executor.run(tokens, 0);
    const FloatTensor logits = gather_logits(*world, reference, executor);
    if (!plan.graph.workload.continues()) {
        return logits;
    }
    std::vector<std::int64_t> first = prompt_lengths(plan, options);
    for (std::int64_t& position : first) {
        position -= options.generate ? 1 : 0;
    }
    return tokens_of(logits, first, measured_steps(plan, options) * plan.graph.workload.query_length());
}

/// Generated ids that are not the most likely ones of `expected` [b, n, v].
std::int64_t count_mismatches(const std::vector<std::vector<std::int32_t>>& generated, const FloatTensor& expected) {
    std::int64_t mismatches = 0;
    const auto vocab = static_cast<std::size_t>(expected.shape[2]);
    std::span<const float> rest(expected.values);
    for (const std::vector<std::int32_t>& sequence : generated) {
        for (const std::int32_t id : sequence) {
            mismatches += greedy_token(rest.first(vocab)) == id ? 0 : 1;
            rest = rest.subspan(vocab);
        }
    }
    return mismatches;
}

/// Rounding to bf16 may let a token choose another expert than the unsharded model; then only the worst case is known.
/// So it is where sequences or stages are not all at the same positions.
void compare_routed(const plan::Plan& plan, const RunOptions& options, const RoutingLog& routing, RunReport& report) {
    const bool known = is_exact(plan) && options.prompt_lengths.empty() && plan.stages.size() == 1 &&
                       plan.graph.workload.micro_batches == 1;
    for (TrafficCount& row : report.traffic) {
        if (row.kind == mesh::CollectiveKind::all_to_all_v && known) {
            row.routed_bytes = routed_bytes(plan, routing, step_positions(plan, options, report.executed_steps));
        }
    }
}

/// With int8 weights: what rounding them does, against the unsharded model of the weights as they were.
void compare_unrounded(const plan::Plan& plan, const plan::Plan& reference, const TokenBatch& tokens,
                       const WeightSource& weights, const RunOptions& options, const FloatTensor& logits,
                       const ChosenExperts& chosen, RunReport& report) {
    const Tolerance tolerance = int8_tolerance_of(plan.graph.workload.dtype, plan.graph.model.layer_count());
    Routing routing{{}, RoutingTies(chosen, tolerance.absolute)};
    const FloatTensor expected =
        reference_logits(plan, reference, tokens, weights, options, rounds_routing(plan, options), routing);
    report.rounding = RoundingReport{compare(logits, expected, tolerance), routing.ties.count(),
                                     count_mismatches(report.generated, expected)};
}

/// Where a bf16 run misses the tolerance: both it and the unsharded bf16 model against that with f32 activations.
void compare_exact(const plan::Plan& plan, const plan::Plan& reference, const TokenBatch& tokens,
                   const WeightSource& weights, const RunOptions& options, const FloatTensor& logits,
                   const FloatTensor& unsharded, const ChosenExperts& chosen, RunReport& report) {
    const std::optional<plan::Plan> exact = in_f32(reference);
    if (!exact) {
        return;
    }
    const Bf16Weights stored(weights);
    const RoundedWeights rounded(stored, plan);
    const Tolerance stated = report.comparison.tolerance;
    Routing routing{{}, RoutingTies(chosen, stated.absolute)};
    const FloatTensor expected =
        reference_logits(plan, *exact, tokens, rounded, options, rounds_routing(plan, options), routing);
    const Comparison own = compare(unsharded, expected, stated);
    report.comparison = compare(logits, expected, measured_tolerance(stated, own));
    report.comparison.own_rms = own.relative_rms;
}

/// Rank 0: computes the unsharded model, of the weights as the ranks have them, and compares.
void verify(const plan::Plan& plan, const plan::Plan& reference, const TokenBatch& tokens, const WeightSource& weights,
            const RunOptions& options, const FloatTensor& logits, const ChosenExperts& chosen, RunReport& report) {
    if (options.progress) {
        options.progress("the unsharded model");
    }
    const auto start = Clock::now();
    const Tolerance tolerance = tolerance_of(plan.graph.workload.dtype, plan.graph.model.layer_count());
    Routing routing{{}, RoutingTies(chosen, tolerance.absolute)};
    const RoundedWeights rounded(weights, plan);
    const bool guided = rounds_routing(plan, options) && !is_exact(plan);
    const FloatTensor expected = reference_logits(plan, reference, tokens, rounded, options, guided, routing);
    report.comparison = compare(logits, expected, tolerance);
    report.routing_ties = routing.ties.count();
    compare_routed(plan, options, routing.log, report);
    report.token_mismatches = count_mismatches(report.generated, expected);
    if (!report.comparison.passed && plan.graph.workload.dtype == tensor::DType::bf16) {
        compare_exact(plan, reference, tokens, weights, options, logits, expected, chosen, report);
    }
    report.comparison.passed = report.comparison.passed && (!is_exact(plan) || report.token_mismatches == 0);
    if (plan.job.int8_weights) {
        compare_unrounded(plan, reference, tokens, weights, options, logits, chosen, report);
    }
    report.reference_seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void set_threads(comm::World& world, const RunOptions& options, RunReport& report) {
    report.cores = comm::gather_cores(world);
    for (std::int64_t rank = 0; rank < world.size(); ++rank) {
        report.threads.push_back(options.threads > 0 ? options.threads : comm::fair_threads(report.cores, rank));
    }
    report.oversubscribed = comm::oversubscribed(report.cores, report.threads);
    omp_set_num_threads(static_cast<int>(report.threads[static_cast<std::size_t>(world.rank())]));
}

bool counts_agree(const RunReport& report) {
    const auto equal = [](const auto& row) { return row.equal(); };
    return std::all_of(report.traffic.begin(), report.traffic.end(), equal) &&
           std::all_of(report.memory.begin(), report.memory.end(), equal);
}

}  // namespace

std::int64_t longest_prompt(const plan::Plan& plan, const RunOptions& options) {
    const model::Workload& workload = plan.graph.workload;
    const std::vector<std::int64_t>& lengths = options.prompt_lengths;
    if (lengths.empty() || !workload.continues()) {
        return workload.sequence_length;
    }
    const std::int64_t shortest = workload.mode == model::Mode::insert ? 0 : 1;
    return std::clamp(*std::max_element(lengths.begin(), lengths.end()), shortest, workload.sequence_length);
}

std::int64_t measured_steps(const plan::Plan& plan, const RunOptions& options) {
    const std::int64_t wanted = std::max<std::int64_t>(options.steps, 1);
    if (!plan.graph.workload.continues()) {
        return base::checked_mul(wanted, plan.graph.workload.step_count());
    }
    const std::int64_t fed = longest_prompt(plan, options) - (options.generate ? 1 : 0);
    return std::min(wanted, (positions_in(plan) - fed) / plan.graph.workload.query_length());
}

std::int64_t tokens_needed(const plan::Plan& plan, const RunOptions& options) {
    if (!plan.graph.workload.continues()) {
        return plan.graph.workload.sequence_length;
    }
    const std::int64_t prompt = longest_prompt(plan, options);
    const std::int64_t measured = base::checked_mul(measured_steps(plan, options), plan.graph.workload.query_length());
    return base::checked_add(prompt - (options.generate ? 1 : 0), measured);
}

std::int64_t tokens_given(const plan::Plan& plan, const RunOptions& options) {
    return options.generate ? plan.graph.workload.sequence_length : tokens_needed(plan, options);
}

RunReport run_and_verify(const plan::Plan& plan, const plan::Plan& reference, comm::World& world,
                         const RunOptions& options) {
    if (!world.same_everywhere(options.plan_hash)) {
        throw std::runtime_error("the ranks hold different plans: were they given the same job and the same program?");
    }
    RunReport report;
    report.ranks = world.size();
    set_threads(world, options, report);
    const std::int64_t given = tokens_given(plan, options);
    TokenBatch tokens =
        options.tokens ? *options.tokens
                       : seeded_tokens(options.seed, plan.graph.workload.total_batch(), given, plan.graph.model.vocab);
    report.problems = check_tokens(plan, tokens, given);
    for (const diag::Diagnostic& problem : check_lengths(plan, options)) {
        report.problems.push_back(problem);
    }
    if (options.checkpoint) {
        const auto found = check_checkpoint(plan.graph, *options.checkpoint);
        report.problems.insert(report.problems.end(), found.begin(), found.end());
    }
    if (!world.agree(report.problems.empty())) {
        return report;
    }
    const std::int64_t needed = tokens_needed(plan, options);
    tokens = tokens.slice({0, std::min(given, needed)}).widened(needed);
    const std::unique_ptr<WeightSource> weights = make_weights(options, plan.graph.model);
    ShardedRun sharded(plan, world, options);
    const FloatTensor logits = sharded.run(tokens, *weights, report);
    const ChosenExperts chosen = sharded.chosen_experts();
    bool good = counts_agree(report);
    if (world.rank() == 0) {
        if (!options.save_weights.empty()) {
            save_weights(options.save_weights, plan.graph, plan.graph.workload.dtype, *weights);
        }
        if (!options.logits_file.empty()) {
            write_logits(options.logits_file, logits);
        }
        if (options.verify) {
            verify(plan, reference, tokens, *weights, options, logits, chosen, report);
            good = counts_agree(report) && report.comparison.passed;
        }
    }
    report.verified = options.verify;
    report.passed = world.agree(good);
    return report;
}

}  // namespace shardplan::exec
