#include "exec/verify.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "exec/checkpoint_weights.h"
#include "exec/routed_traffic.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"

namespace shardplan::exec {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

bool decodes(const plan::Plan& plan) {
    return plan.graph.workload.mode == model::Mode::decode;
}

std::vector<diag::Diagnostic> check_tokens(const plan::Plan& plan, const TokenBatch& tokens, std::int64_t needed) {
    const model::Workload& workload = plan.graph.workload;
    diag::Diagnostics problems;
    if (tokens.batch != workload.batch_size || tokens.length < needed ||
        std::ssize(tokens.ids) != tokens.batch * tokens.length) {
        problems.report("SP7002", fmt::format("{} sequences of {} tokens, the run needs {} sequences of {}",
                                              tokens.batch, tokens.length, workload.batch_size, needed));
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

/// The sharded run of one rank.
class ShardedRun {
public:
    ShardedRun(const plan::Plan& plan, comm::World& world, const RunOptions& options)
        : plan_(plan),
          world_(world),
          options_(options),
          allocator_(options.poison),
          kernels_(kernels::make_kernels(options.kernels)),
          groups_(world.groups(plan.mesh.refined())) {}

    /// Returns the logits of the measured steps on rank 0.
    FloatTensor run(const TokenBatch& tokens, const WeightSource& weights, RunReport& report) {
        if (options_.progress) {
            options_.progress("weights");
        }
        const auto start = Clock::now();
        executor_ = std::make_unique<Executor>(plan_, *groups_, *kernels_, weights, allocator_);
        report.load_seconds = seconds_since(start);
        report.kernels = kernels_->describe();
        report.measured_steps = measured_steps(plan_, options_.steps);
        FloatTensor logits = decodes(plan_) ? decode(tokens, report) : prefill(tokens, report);
        collect(report);
        executor_.reset();
        return logits;
    }

private:
    void step(const TokenBatch& ids, std::int64_t first_position, RunReport& report) {
        if (options_.progress) {
            const std::int64_t prompt = decodes(plan_) ? plan_.graph.workload.sequence_length : 0;
            options_.progress(fmt::format("step {} of {}", report.executed_steps + 1, prompt + report.measured_steps));
        }
        world_.barrier();
        const auto start = Clock::now();
        executor_->run(ids, first_position);
        report.step_seconds.push_back(seconds_since(start));
        report.executed_steps += 1;
    }

    bool wants_logits() const { return options_.verify || !options_.logits_file.empty(); }

    FloatTensor prefill(const TokenBatch& tokens, RunReport& report) {
        for (std::int64_t i = 0; i < report.measured_steps; ++i) {
            step(tokens, 0, report);
        }
        return wants_logits() ? gather_logits(world_, plan_, *executor_) : FloatTensor{};
    }

    FloatTensor decode(const TokenBatch& tokens, RunReport& report) {
        const std::int64_t prompt = plan_.graph.workload.sequence_length;
        for (std::int64_t t = 0; t < prompt; ++t) {
            step(tokens.slice({t, t + 1}), t, report);
        }
        executor_->reset_times();
        report.step_seconds.clear();
        FloatTensor logits;
        if (world_.rank() == 0 && wants_logits()) {
            logits.shape = {tokens.batch, report.measured_steps, plan_.graph.model.vocab};
            logits.values.resize(static_cast<std::size_t>(tensor::element_count(logits.shape)));
        }
        for (std::int64_t i = 0; i < report.measured_steps; ++i) {
            step(tokens.slice({prompt + i, prompt + i + 1}), prompt + i, report);
            if (wants_logits()) {
                const FloatTensor part = gather_logits(world_, plan_, *executor_);
                if (world_.rank() == 0) {
                    put_tokens(part, i, logits);
                }
            }
        }
        return logits;
    }

    void collect(RunReport& report) {
        report.traffic = compare_traffic(world_, plan_, groups_->traffic(), report.executed_steps);
        report.memory = compare_memory(world_, plan_, allocator_);
        report.scratch_bytes = allocator_.peak(Category::scratch);
        world_.all_reduce(std::span(&report.scratch_bytes, 1), comm::WorldOp::max);
        world_.all_reduce(std::span<double>(report.step_seconds), comm::WorldOp::max);
        world_.all_reduce(std::span(&report.load_seconds, 1), comm::WorldOp::max);
        report.times = executor_->times();
        std::vector<double> seconds;
        for (const StepTime& time : report.times) {
            seconds.push_back(time.seconds);
        }
        world_.all_reduce(std::span<double>(seconds), comm::WorldOp::max);
        for (std::size_t i = 0; i < seconds.size(); ++i) {
            report.times[i].seconds = seconds[i];
        }
    }

    const plan::Plan& plan_;
    comm::World& world_;
    const RunOptions& options_;
    Allocator allocator_;
    std::unique_ptr<kernels::Kernels> kernels_;
    std::unique_ptr<comm::Groups> groups_;
    std::unique_ptr<Executor> executor_;
};

/// Logits of the unsharded model at the positions that were measured.
FloatTensor reference_logits(const plan::Plan& plan, const plan::Plan& reference, const TokenBatch& tokens,
                             const WeightSource& weights, std::int64_t steps, RoutingLog& routing) {
    const auto world = comm::make_self_world();
    const auto groups = world->groups(reference.mesh.refined());
    const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
    Allocator allocator;
    Executor executor(reference, *groups, *kernels, weights, allocator);
    executor.watch_routing([&](int layer, const tensor::ConstView& weights) { routing.add(layer, weights); });
    executor.run(tokens, 0);
    FloatTensor logits = gather_logits(*world, reference, executor);
    if (decodes(plan)) {
        const std::int64_t prompt = plan.graph.workload.sequence_length;
        return tokens_of(logits, {prompt, prompt + steps});
    }
    return logits;
}

bool counts_agree(const RunReport& report) {
    const auto equal = [](const auto& row) { return row.equal(); };
    return std::all_of(report.traffic.begin(), report.traffic.end(), equal) &&
           std::all_of(report.memory.begin(), report.memory.end(), equal);
}

/// Rounding to bf16 may let a token choose another expert than the unsharded model; then only the worst case is known.
void compare_routed(const plan::Plan& plan, const RoutingLog& routing, RunReport& report) {
    for (TrafficCount& row : report.traffic) {
        if (row.kind == mesh::CollectiveKind::all_to_all_v && plan.graph.workload.dtype == tensor::DType::f32) {
            row.routed_bytes = routed_bytes(plan, routing, report.executed_steps);
        }
    }
}

}  // namespace

std::int64_t measured_steps(const plan::Plan& plan, std::int64_t wanted) {
    std::int64_t steps = std::max<std::int64_t>(wanted, 1);
    if (decodes(plan)) {
        for (const plan::StoredTensor& stored : plan.stored) {
            if (stored.kind == plan::StoredKind::cache) {
                steps = std::min(steps, stored.shape[1] - plan.graph.workload.sequence_length);
            }
        }
    }
    return steps;
}

std::int64_t tokens_needed(const plan::Plan& plan, std::int64_t steps) {
    const std::int64_t prompt = plan.graph.workload.sequence_length;
    return decodes(plan) ? base::checked_add(prompt, measured_steps(plan, steps)) : prompt;
}

RunReport run_and_verify(const plan::Plan& plan, const plan::Plan& reference, comm::World& world,
                         const RunOptions& options) {
    if (!world.same_everywhere(options.plan_hash)) {
        throw std::runtime_error("the ranks hold different plans: were they given the same job and the same program?");
    }
    if (options.threads > 0) {
        omp_set_num_threads(options.threads);
    }
    RunReport report;
    report.ranks = world.size();
    const std::int64_t needed = tokens_needed(plan, options.steps);
    TokenBatch tokens =
        options.tokens ? *options.tokens
                       : seeded_tokens(options.seed, plan.graph.workload.batch_size, needed, plan.graph.model.vocab);
    report.problems = check_tokens(plan, tokens, needed);
    if (options.checkpoint) {
        const auto found = check_checkpoint(plan.graph, *options.checkpoint);
        report.problems.insert(report.problems.end(), found.begin(), found.end());
    }
    if (!world.agree(report.problems.empty())) {
        return report;
    }
    tokens = tokens.slice({0, needed});
    const std::unique_ptr<WeightSource> weights = make_weights(options, plan.graph.model);
    const FloatTensor logits = ShardedRun(plan, world, options).run(tokens, *weights, report);
    bool good = counts_agree(report);
    if (world.rank() == 0) {
        if (!options.save_weights.empty()) {
            save_weights(options.save_weights, plan.graph, plan.graph.workload.dtype, *weights);
        }
        if (!options.logits_file.empty()) {
            write_logits(options.logits_file, logits);
        }
        if (options.verify) {
            if (options.progress) {
                options.progress("the unsharded model");
            }
            const auto start = Clock::now();
            RoutingLog routing;
            const FloatTensor expected =
                reference_logits(plan, reference, tokens, *weights, report.measured_steps, routing);
            report.reference_seconds = seconds_since(start);
            report.comparison =
                compare(logits, expected, tolerance_of(plan.graph.workload.dtype, plan.graph.model.layer_count()));
            compare_routed(plan, routing, report);
            good = counts_agree(report) && report.comparison.passed;
        }
    }
    report.verified = options.verify;
    report.passed = world.agree(good);
    return report;
}

}  // namespace shardplan::exec
