#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "exec/collective_call.h"
#include "exec/compute.h"

namespace shardplan::exec {

using plan::ValueId;
using plan::ValueKind;

/// One use of a block while it runs.
struct Executor::Frame {
    const plan::BlockPlan& block;
    const model::Block& graph;
    const BlockSchedule& schedule;
    const UseTable& table;
    std::vector<tensor::View>& views;
    int use;
    int layer;
    bool turned;            ///< the arena is used upside down
    std::int64_t pass = 0;  ///< of the loop that runs

    const plan::Value& value(ValueId id) const { return block.values[static_cast<std::size_t>(id)]; }
};

namespace {

Category category_of(ValueKind kind) {
    return kind == ValueKind::gathered ? Category::communication : Category::activations;
}

bool is_routing(const model::Block& graph, const plan::ComputeStep& step) {
    return step.kind == plan::ComputeKind::op &&
           graph.ops[static_cast<std::size_t>(step.op)].kind == model::OpKind::route;
}

mesh::AxisList stage_axis(const plan::Plan& plan) {
    mesh::AxisList axis;
    axis.push_back(*plan.pipeline_axis);
    return axis;
}

}  // namespace

Executor::Executor(const plan::Plan& plan, comm::Groups& groups, const kernels::Kernels& kernels,
                   const WeightSource& weights, Allocator& allocator)
    : plan_(plan),
      groups_(groups),
      kernels_(kernels),
      allocator_(allocator),
      stage_index_(static_cast<std::int64_t>(plan::stage_of(plan, groups.rank()))),
      stage_(plan.stages[static_cast<std::size_t>(stage_index_)]),
      schedule_(make_schedule(plan, groups.rank())),
      parameters_(plan, groups.rank(), kernels, weights, allocator),
      caches_(plan.stored.size()),
      arena_(plan, stage_, allocator) {
    if (!(groups.mesh() == plan.mesh.refined())) {
        throw std::logic_error("the groups are on another mesh than the plan");
    }
    allocate_caches();
    for (const plan::BlockPlan& block : plan.blocks) {
        views_.push_back(views_of(block));
    }
    for (int use = stage_.first; use < stage_.end; ++use) {
        uses_.push_back(
            make_use_table(plan, schedule_, parameters_, caches_, plan.sequence[static_cast<std::size_t>(use)]));
    }
    reset_times();
}

void Executor::allocate_caches() {
    const plan::StageTensors of_stage(plan_, stage_);
    for (std::size_t i = 0; i < plan_.stored.size(); ++i) {
        const plan::StoredTensor& stored = plan_.stored[i];
        if (stored.kind != plan::StoredKind::cache) {
            continue;
        }
        for (const int layer : stored.layers) {
            if (!of_stage.holds(static_cast<int>(i), layer)) {
                caches_[i].emplace_back();
                continue;
            }
            Buffer& buffer = caches_[i].emplace_back(allocator_, Category::cache, stored.bytes_per_device);
            // Rows that hold no token yet are masked, but 0 * NaN would still be NaN.
            std::memset(buffer.data(), 0, static_cast<std::size_t>(buffer.bytes()));
        }
    }
}

void Executor::reset_times() {
    run_seconds_ = 0.0;
    times_.clear();
    for (const Timer& timer : schedule_.timers) {
        times_.push_back({timer, 0, 0.0});
    }
}

double Executor::outside_seconds() const {
    double inside = 0.0;
    for (const StepTime& time : times_) {
        inside += time.seconds;
    }
    return run_seconds_ - inside;
}

std::vector<StepTime> Executor::times() const {
    return times_;
}

void Executor::check_input(const TokenBatch& ids, std::span<const std::int64_t> first_positions) const {
    const model::Workload& workload = plan_.graph.workload;
    if (ids.batch != workload.batch_size || ids.length != workload.query_length() ||
        std::ssize(ids.ids) != ids.batch * ids.length || std::ssize(first_positions) != ids.batch) {
        throw std::invalid_argument(fmt::format("{} x {} token ids and {} positions for a step of {} x {}", ids.batch,
                                                ids.length, first_positions.size(), workload.batch_size,
                                                workload.query_length()));
    }
    const std::int64_t vocab = plan_.graph.model.vocab;
    const auto outside = std::find_if(ids.ids.begin(), ids.ids.end(), [&](auto id) { return id < 0 || id >= vocab; });
    if (outside != ids.ids.end()) {
        throw std::invalid_argument(fmt::format("token id {} is not in [0, {})", *outside, vocab));
    }
    const std::int64_t last = *std::max_element(first_positions.begin(), first_positions.end()) + ids.length;
    for (const plan::StoredTensor& stored : plan_.stored) {
        if (stored.kind == plan::StoredKind::cache && last > stored.shape[1]) {
            throw std::invalid_argument(
                fmt::format("a cache of {} positions cannot hold {} tokens", stored.shape[1], last));
        }
    }
}

void Executor::run(const TokenBatch& ids, std::int64_t first_position) {
    const std::vector<std::int64_t> positions(static_cast<std::size_t>(ids.batch), first_position);
    run(ids, positions);
}

void Executor::run(const TokenBatch& ids, std::span<const std::int64_t> first_positions) {
    check_input(ids, first_positions);
    const auto start = Trace::Clock::now();
    if (trace_ != nullptr) {
        trace_->begin_run();
    }
    drop_output();  // the logits of the last step
    if (!is_first()) {
        receive_hidden();
    }
    for (int use = stage_.first; use < stage_.end; ++use) {
        run_block(use, ids, first_positions);
    }
    if (!is_last()) {
        send_hidden();
    }
    const auto end = Trace::Clock::now();
    run_seconds_ += std::chrono::duration<double>(end - start).count();
    if (trace_ != nullptr) {
        trace_->add(-1, trace_model_step, 0, start, end);
    }
}

/// From the same coordinates in the stage before, in the layout that the first block takes.
void Executor::receive_hidden() {
    const auto block = static_cast<std::size_t>(plan_.sequence[static_cast<std::size_t>(stage_.first)].block);
    const auto input = static_cast<std::size_t>(plan_.blocks[block].input.value());
    const plan::Value& value = plan_.blocks[block].values[input];
    allocator_.add(Category::activations, value.local_bytes);
    has_output_ = true;
    output_ = {arena_.places(block, false)[input], value.dtype, value.local_shape};
    const auto start = Trace::Clock::now();
    groups_.receive(stage_axis(plan_), stage_index_ - 1, output_);
    count_time(schedule_.receive_timer, {-1, trace_receive}, start);
}

void Executor::send_hidden() {
    const auto start = Trace::Clock::now();
    groups_.send(stage_axis(plan_), stage_index_ + 1, output_);
    count_time(schedule_.send_timer, {-1, trace_send}, start);
    drop_output();
}

void Executor::drop_output() {
    if (has_output_) {
        allocator_.remove(Category::activations, output_.bytes());
    }
    has_output_ = false;
}

void Executor::count_time(std::size_t timer, const TraceEvent& event, Trace::Clock::time_point start) {
    const auto end = Trace::Clock::now();
    times_[timer].calls += 1;
    times_[timer].seconds += std::chrono::duration<double>(end - start).count();
    if (trace_ != nullptr) {
        trace_->add(event.use, event.step, event.pass, start, end);
    }
}

void Executor::begin_life(Frame& frame, ValueId id) {
    const plan::Value& value = frame.value(id);
    allocator_.add(category_of(value.kind), value.local_bytes);
    if (allocator_.poison()) {
        std::memset(frame.views[static_cast<std::size_t>(id)].data, 0xff, static_cast<std::size_t>(value.local_bytes));
    }
}

void Executor::end_life(Frame& frame, ValueId id) {
    const plan::Value& value = frame.value(id);
    if (allocator_.poison()) {
        std::memset(frame.views[static_cast<std::size_t>(id)].data, 0xff, static_cast<std::size_t>(value.local_bytes));
    }
    allocator_.remove(category_of(value.kind), value.local_bytes);
}

void Executor::enter_block(const TokenBatch& ids, Frame& frame) {
    const auto block = static_cast<std::size_t>(&frame.block - plan_.blocks.data());
    const std::vector<std::byte*>& places = arena_.places(block, frame.turned);
    for (std::size_t v = 0; v < places.size(); ++v) {
        frame.views[v].data = places[v];
    }
    for (const auto& [id, data] : frame.table.stored) {
        frame.views[static_cast<std::size_t>(id)].data = data;
    }
    for (const ValueId id : frame.schedule.token_inputs) {
        begin_life(frame, id);
        copy_ids(ids, plan_.token_order, frame.schedule.ranges[static_cast<std::size_t>(id)],
                 frame.views[static_cast<std::size_t>(id)]);
    }
    if (frame.block.input) {
        const tensor::View& view = frame.views[static_cast<std::size_t>(*frame.block.input)];
        if (!has_output_ || output_.data != view.data || output_.shape != view.shape || output_.dtype != view.dtype) {
            throw std::logic_error(fmt::format("block {} does not take what the block before gives", frame.block.name));
        }
    }
}

void Executor::run_block(int use_index, const TokenBatch& ids, std::span<const std::int64_t> first_positions) {
    const model::BlockUse& use = plan_.sequence[static_cast<std::size_t>(use_index)];
    const auto index = static_cast<std::size_t>(use.block);
    const plan::BlockPlan& block = plan_.blocks[index];
    Frame frame{block,
                plan_.graph.blocks[index],
                schedule_.blocks[index],
                uses_[static_cast<std::size_t>(use_index - stage_.first)],
                views_[index],
                use_index,
                use.layer,
                arena_.turned(use_index),
                0};
    enter_block(ids, frame);
    for (std::size_t step = 0; step < block.steps.size();) {
        std::size_t end = step + 1;
        const plan::Step& first = block.steps[step];
        while (end < block.steps.size() && ((first.loop != 0 && block.steps[end].loop == first.loop) ||
                                            (first.joined != 0 && block.steps[end].joined == first.joined))) {
            ++end;
        }
        first.joined != 0 ? run_joined(frame, step, end, first_positions) : run_loop(frame, step, end, first_positions);
        for (std::size_t s = step; s < end; ++s) {
            for (const ValueId id : frame.schedule.steps[s].release) {
                end_life(frame, id);
            }
        }
        step = end;
    }
    const tensor::View& output = frame.views[static_cast<std::size_t>(block.output)];
    output_.data = output.data;
    output_.dtype = output.dtype;
    output_.shape = output.shape;
    has_output_ = true;
}

/// The steps [first, end), which are one step or the body of a loop.
void Executor::run_loop(Frame& frame, std::size_t first, std::size_t end,
                        std::span<const std::int64_t> first_positions) {
    const std::int64_t times = frame.block.steps[first].times;
    for (frame.pass = 0; frame.pass < times; ++frame.pass) {
        for (std::size_t step = first; step < end; ++step) {
            run_step(frame, step, first_positions);
        }
    }
}

/// The steps [first, end) are a reduce-scatter, computation and an all-gather.
void Executor::run_joined(Frame& frame, std::size_t first, std::size_t end,
                          std::span<const std::int64_t> first_positions) {
    for (std::size_t step = first; step < end; ++step) {
        for (const ValueId id : frame.schedule.steps[step].allocate) {
            begin_life(frame, id);
        }
    }
    const auto view = [&](ValueId id) -> const tensor::View& { return frame.views[static_cast<std::size_t>(id)]; };
    const plan::CollectiveStep& scatter = frame.block.steps[first].collective.value();
    const plan::CollectiveStep& gather = frame.block.steps[end - 1].collective.value();
    const Reservation staging(allocator_, Category::communication, scatter.staging_bytes);
    const auto start = Trace::Clock::now();
    groups_.reduce_scatter_gather(
        scatter.axes, scatter.dim, view(scatter.input), view(scatter.output),
        [&] {
            for (std::size_t step = first + 1; step + 1 < end; ++step) {
                compute(frame, step, first_positions);
            }
        },
        view(gather.input), view(gather.output),
        {arena_.at(scatter.staging_offset, staging.bytes(), frame.turned), static_cast<std::size_t>(staging.bytes())});
    count_time(frame.schedule.steps[first].timer, {frame.use, static_cast<std::int32_t>(first)}, start);
}

void Executor::compute(Frame& frame, std::size_t index, std::span<const std::int64_t> first_positions) {
    const plan::ComputeStep& step = frame.block.steps[index].compute.value();
    const std::int64_t scratch = step.scratch_bytes;
    run_compute({plan_,
                 frame.block,
                 frame.graph,
                 frame.schedule,
                 frame.layer,
                 groups_.rank(),
                 frame.pass,
                 kernels_,
                 frame.table.prepared[index],
                 {arena_.at(step.scratch_offset, scratch, frame.turned), static_cast<std::size_t>(scratch)},
                 first_positions,
                 frame.views},
                step, frame.schedule.steps[index]);
}

void Executor::run_step(Frame& frame, std::size_t index, std::span<const std::int64_t> first_positions) {
    const plan::Step& step = frame.block.steps[index];
    const StepSchedule& schedule = frame.schedule.steps[index];
    for (const ValueId id : schedule.allocate) {
        begin_life(frame, id);
    }
    const auto start = Trace::Clock::now();
    if (step.compute) {
        compute(frame, index, first_positions);
    } else {
        const plan::CollectiveStep& collective = *step.collective;
        const Reservation staging(allocator_, Category::communication, collective.staging_bytes);
        run_collective(groups_, frame.block, collective, frame.views,
                       {arena_.at(collective.staging_offset, staging.bytes(), frame.turned),
                        static_cast<std::size_t>(staging.bytes())});
    }
    count_time(schedule.timer, {frame.use, static_cast<std::int32_t>(index), static_cast<std::int32_t>(frame.pass)},
               start);
    if (step.compute && is_routing(frame.graph, *step.compute)) {
        show_routing(frame, *step.compute, [&] { compute(frame, index, first_positions); });
    }
}

void Executor::show_routing(const Frame& frame, const plan::ComputeStep& step,
                            const std::function<void()>& route) const {
    const auto logits = static_cast<std::size_t>(step.inputs.front());
    const auto routing = static_cast<std::size_t>(step.outputs.front());
    if (routing_guide_) {
        routing_guide_(frame.layer, frame.views[logits], frame.views[routing], route);
    }
    if (routing_watcher_) {
        routing_watcher_(frame.layer, frame.views[routing], frame.schedule.ranges[routing]);
    }
}

tensor::ConstView Executor::cache(std::size_t stored, std::size_t instance) const {
    const plan::StoredTensor& tensor = plan_.stored.at(stored);
    return {caches_.at(stored).at(instance).data(), tensor.dtype, tensor.local_shape};
}

LogitsBlock Executor::logits() const {
    if (!is_last()) {
        return {output_, {}, false, 0};
    }
    if (!has_output_) {
        throw std::logic_error("no step has been run");
    }
    const auto block = static_cast<std::size_t>(plan_.sequence.back().block);
    const auto output = static_cast<std::size_t>(plan_.blocks[block].output);
    const mesh::AxisSet cut = plan_.blocks[block].values[output].layout.sharded();
    const mesh::Mesh& mesh = groups_.mesh();
    bool first = true;
    for (int axis = 0; axis < mesh.axis_count(); ++axis) {
        const mesh::AxisId id{static_cast<std::uint8_t>(axis)};
        first = first && (cut.contains(id) || plan_.pipeline_axis == id || mesh.coordinate(groups_.rank(), id) == 0);
    }
    return {output_, schedule_.blocks[block].ranges[output], first, plan_.graph.model.outputs()};
}

}  // namespace shardplan::exec
