#include "exec/sharded_run.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "base/checked.h"
#include "exec/decode_feed.h"
#include "exec/greedy.h"

namespace shardplan::exec {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<std::int64_t> prompt_lengths(const plan::Plan& plan, const RunOptions& options) {
    const model::Workload& workload = plan.graph.workload;
    if (!options.prompt_lengths.empty()) {
        return options.prompt_lengths;
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(workload.total_batch()), workload.sequence_length);
}

bool is_exact(const plan::Plan& plan) {
    return plan.graph.workload.dtype == tensor::DType::f32;
}

bool rounds_routing(const plan::Plan& plan, const RunOptions& options) {
    return options.verify && plan.graph.model.moe.experts > 0 && (!is_exact(plan) || plan.job.int8_weights);
}

DecodeFeed feed_of(const plan::Plan& plan, const RunOptions& options) {
    const model::Workload& workload = plan.graph.workload;
    return {prompt_lengths(plan, options), longest_prompt(plan, options), measured_steps(plan, options),
            options.generate, workload.query_length()};
}

std::vector<std::int64_t> step_positions(const plan::Plan& plan, const RunOptions& options, std::int64_t executed) {
    const model::Workload& workload = plan.graph.workload;
    const std::optional<DecodeFeed> feed = workload.continues() ? std::optional(feed_of(plan, options)) : std::nullopt;
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < executed; ++i) {
        positions.push_back(feed ? feed->position(0, i) : i % workload.step_count() * workload.query_length());
    }
    return positions;
}

ShardedRun::ShardedRun(const plan::Plan& plan, comm::World& world, const RunOptions& options)
    : plan_(plan),
      world_(world),
      options_(options),
      allocator_(options.poison),
      kernels_(kernels::make_kernels(options.kernels)),
      groups_(world.groups(plan.mesh.refined())) {}

FloatTensor ShardedRun::run(TokenBatch& tokens, const WeightSource& weights, RunReport& report) {
    if (options_.progress) {
        options_.progress("weights");
    }
    const auto start = Clock::now();
    executor_ = std::make_unique<Executor>(plan_, *groups_, *kernels_, weights, allocator_);
    report.load_seconds = seconds_since(start);
    if (rounds_routing(plan_, options_)) {
        watch_routing();
    }
    executor_->record(options_.trace ? &trace_ : nullptr);
    report.kernels = kernels_->describe();
    report.measured_steps = measured_steps(plan_, options_);
    FloatTensor logits;
    if (options_.repeat > 0) {
        repeat(tokens, report);
    } else {
        logits = plan_.graph.workload.continues() ? decode(tokens, report) : prefill(tokens, report);
    }
    collect(report);
    executor_.reset();
    return logits;
}

void ShardedRun::watch_routing() {
    executor_->watch_routing(
        [this](int layer, const tensor::ConstView& routing, std::span<const base::Interval> ranges) {
            const auto begun = Clock::now();
            const std::int64_t batch = ranges[0].begin;
            const std::int64_t slots = ranges[1].begin;
            chosen_.add(
                layer, routing, [&](std::int64_t row) { return first_sequence_ + batch + row; },
                [&](std::int64_t row, std::int64_t column) {
                    return first_positions_[static_cast<std::size_t>(batch + row)] +
                           plan_.token_order.position(slots + column);
                });
            copying_ += seconds_since(begun);
        });
}

ChosenExperts ShardedRun::chosen_experts() const {
    ChosenExperts all;
    if (rounds_routing(plan_, options_)) {
        for (const std::string& message : world_.gather(chosen_.message())) {
            all.merge(message);
        }
    }
    return all;
}

void ShardedRun::step(const TokenBatch& ids, std::span<const std::int64_t> first_positions, std::int64_t steps,
                      RunReport& report) {
    if (options_.progress) {
        options_.progress(fmt::format("step {} of {}", report.executed_steps + 1, steps));
    }
    world_.barrier();
    const auto start = Clock::now();
    const std::int64_t batch = plan_.graph.workload.batch_size;
    copying_ = 0.0;
    parts_.clear();
    for (std::int64_t first = 0; first < ids.batch; first += batch) {  // micro-batches
        first_sequence_ = first;
        first_positions_ = first_positions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(batch));
        executor_->run(ids.rows(first, batch), first_positions_);
        if (wants_logits()) {
            const auto computed = Clock::now();
            parts_.push_back(logits_part(*executor_));
            copying_ += seconds_since(computed);
        }
    }
    report.step_seconds.push_back(seconds_since(start) - copying_);
    report.executed_steps += 1;
}

FloatTensor ShardedRun::prefill(const TokenBatch& tokens, RunReport& report) {
    const model::Workload& workload = plan_.graph.workload;
    const std::int64_t length = workload.query_length();
    const std::int64_t chunks = workload.step_count();
    FloatTensor logits;
    for (std::int64_t i = 0; i < report.measured_steps; ++i) {
        const std::int64_t first = i % chunks * length;
        step(tokens.slice({first, first + length}),
             std::vector<std::int64_t>(static_cast<std::size_t>(tokens.batch), first), report.measured_steps, report);
        if (wants_logits() && i + chunks >= report.measured_steps) {  // of the last pass
            add_logits(first, workload.sequence_length, logits);
        }
    }
    return logits;
}

FloatTensor ShardedRun::decode(TokenBatch& tokens, RunReport& report) {
    const DecodeFeed feed = feed_of(plan_, options_);
    const std::int64_t each = plan_.graph.workload.query_length();
    FloatTensor logits;
    for (std::int64_t i = 0; i < feed.steps(); ++i) {
        if (i == feed.first_measured()) {
            begin_measuring(report);
        }
        step(feed.tokens(tokens, i), feed.positions(i), feed.steps(), report);
        if (i < feed.first_measured()) {
            continue;
        }
        if (wants_logits()) {
            add_logits((i - feed.first_measured()) * each, report.measured_steps * each, logits);
        }
        if (options_.generate) {
            const std::vector<std::int32_t> ids = greedy_tokens(world_, *executor_, tokens.batch);
            feed.append(tokens, i, ids);
            keep_generated(ids, report);
        }
    }
    return logits;
}

/// Forgets what the passes until now took.
void ShardedRun::begin_measuring(RunReport& report) {
    executor_->reset_times();
    trace_.clear();
    report.step_seconds.clear();
}

void ShardedRun::repeat(const TokenBatch& tokens, RunReport& report) {
    const model::Workload& workload = plan_.graph.workload;
    const std::int64_t length = workload.query_length();
    const std::int64_t chunks = workload.continues() ? 1 : workload.step_count();
    const std::int64_t start = workload.continues() ? workload.sequence_length : 0;
    report.measured_steps = options_.repeat * chunks;
    for (std::int64_t i = -chunks; i < report.measured_steps; ++i) {
        if (i == 0) {
            begin_measuring(report);
        }
        const std::int64_t first = start + (i + chunks) % chunks * length;
        step(tokens.slice({first, first + length}),
             std::vector<std::int64_t>(static_cast<std::size_t>(tokens.batch), first), report.measured_steps + chunks,
             report);
    }
}

void ShardedRun::add_logits(std::int64_t first, std::int64_t length, FloatTensor& whole) {
    const model::Workload& workload = plan_.graph.workload;
    for (std::size_t m = 0; m < parts_.size(); ++m) {
        const FloatTensor part = gather_logits(world_, plan_, parts_[m]);
        if (world_.rank() != 0) {
            continue;
        }
        if (whole.values.empty()) {
            whole.shape = {workload.total_batch(), length, part.shape[2]};
            whole.values.resize(static_cast<std::size_t>(tensor::element_count(whole.shape)));
        }
        put_tokens(part, first, whole, static_cast<std::int64_t>(m) * workload.batch_size);
    }
}

void ShardedRun::keep_generated(std::span<const std::int32_t> ids, RunReport& report) const {
    if (world_.rank() == 0) {
        report.generated.resize(ids.size());
        for (std::size_t b = 0; b < ids.size(); ++b) {
            report.generated[b].push_back(ids[b]);
        }
    }
}

void ShardedRun::collect(RunReport& report) {
    report.transport = comm::describe(groups_->windows());
    report.traffic = compare_traffic(world_, plan_, groups_->traffic(),
                                     base::checked_mul(report.executed_steps, plan_.graph.workload.micro_batches));
    report.memory = compare_memory(world_, plan_, allocator_);
    report.scratch_bytes = allocator_.peak(Category::scratch);
    report.resident_bytes = peak_resident_bytes();
    report.outside_seconds = executor_->outside_seconds();
    world_.all_reduce(std::span(&report.scratch_bytes, 1), comm::WorldOp::max);
    world_.all_reduce(std::span(&report.resident_bytes, 1), comm::WorldOp::max);
    world_.all_reduce(std::span(&report.outside_seconds, 1), comm::WorldOp::max);
    world_.all_reduce(std::span<double>(report.step_seconds), comm::WorldOp::max);
    world_.all_reduce(std::span(&report.load_seconds, 1), comm::WorldOp::max);
    if (options_.trace) {
        report.trace = gather_trace(world_, trace_);
    }
    report.times = executor_->times();
    std::vector<double> seconds;
    std::vector<std::int64_t> calls;  // the stages of a pipeline make different ones
    for (const StepTime& time : report.times) {
        seconds.push_back(time.seconds);
        calls.push_back(time.calls);
    }
    world_.all_reduce(std::span<double>(seconds), comm::WorldOp::max);
    world_.all_reduce(std::span<std::int64_t>(calls), comm::WorldOp::max);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        report.times[i].seconds = seconds[i];
        report.times[i].calls = calls[i];
    }
}

}  // namespace shardplan::exec
