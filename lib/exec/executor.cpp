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

/// The values of one block while it runs.
struct Executor::Frame {
    const plan::BlockPlan& block;
    const model::Block& graph;
    const BlockSchedule& schedule;
    int layer;
    std::vector<tensor::View> views;
    std::vector<Buffer> buffers;  ///< of the values that own memory
    std::int64_t pass = 0;        ///< of the loop that runs

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

/// The ids of `ranges` of the batch, row by row; the second range is of slots.
void copy_ids(const TokenBatch& ids, const plan::TokenOrder& order, const std::vector<base::Interval>& ranges,
              const tensor::View& to) {
    std::int32_t* out = to.as<std::int32_t>();
    for (std::int64_t b = ranges[0].begin; b < ranges[0].end; ++b) {
        for (std::int64_t t = ranges[1].begin; t < ranges[1].end; ++t) {
            *out++ = ids.at(b, order.position(t));
        }
    }
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
      parameters_(plan, schedule_, groups.rank(), kernels, weights, allocator),
      caches_(plan.stored.size()) {
    if (!(groups.mesh() == plan.mesh.refined())) {
        throw std::logic_error("the groups are on another mesh than the plan");
    }
    allocate_caches();
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
    times_.clear();
    for (const Timer& timer : schedule_.timers) {
        times_.push_back({timer, 0, 0.0});
    }
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
    carried_ = Buffer();  // the logits of the last step
    if (!is_first()) {
        receive_hidden();
    }
    for (int use = stage_.first; use < stage_.end; ++use) {
        run_block(plan_.sequence[static_cast<std::size_t>(use)], ids, first_positions);
    }
    if (!is_last()) {
        send_hidden();
    }
}

/// From the same coordinates in the stage before, in the layout that the first block takes.
void Executor::receive_hidden() {
    const auto block = static_cast<std::size_t>(plan_.sequence[static_cast<std::size_t>(stage_.first)].block);
    const auto input = static_cast<std::size_t>(plan_.blocks[block].input.value());
    const plan::Value& value = plan_.blocks[block].values[input];
    carried_ = Buffer(allocator_, Category::activations, value.local_bytes);
    carried_view_ = carried_.view(value.dtype, value.local_shape);
    const auto start = std::chrono::steady_clock::now();
    groups_.receive(stage_axis(plan_), stage_index_ - 1, carried_view_);
    count_time(schedule_.receive_timer, start);
}

void Executor::send_hidden() {
    const auto start = std::chrono::steady_clock::now();
    groups_.send(stage_axis(plan_), stage_index_ + 1, carried_view_);
    count_time(schedule_.send_timer, start);
    carried_ = Buffer();
}

void Executor::count_time(std::size_t timer, std::chrono::steady_clock::time_point start) {
    times_[timer].calls += 1;
    times_[timer].seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Executor::allocate(Frame& frame, ValueId id) {
    const plan::Value& value = frame.value(id);
    const auto index = static_cast<std::size_t>(id);
    frame.buffers[index] = Buffer(allocator_, category_of(value.kind), value.local_bytes);
    frame.views[index].data = frame.buffers[index].data();
}

void Executor::enter_block(const model::BlockUse& use, const TokenBatch& ids, Frame& frame) {
    for (std::size_t v = 0; v < frame.block.values.size(); ++v) {
        const plan::Value& value = frame.block.values[v];
        tensor::View& view = frame.views[v];
        view = {nullptr, value.dtype, value.local_shape};
        if (value.kind == ValueKind::parameter) {
            view.data = const_cast<std::byte*>(parameters_.plain(value.stored, use.layer).data);
        } else if (value.kind == ValueKind::cache) {
            const std::vector<int>& layers = plan_.stored[static_cast<std::size_t>(value.stored)].layers;
            const auto instance = std::find(layers.begin(), layers.end(), use.layer) - layers.begin();
            view.data = caches_[static_cast<std::size_t>(value.stored)].at(static_cast<std::size_t>(instance)).data();
        }
    }
    for (const ValueId id : frame.schedule.token_inputs) {
        allocate(frame, id);
        copy_ids(ids, plan_.token_order, frame.schedule.ranges[static_cast<std::size_t>(id)],
                 frame.views[static_cast<std::size_t>(id)]);
    }
    if (frame.block.input) {
        const auto input = static_cast<std::size_t>(*frame.block.input);
        tensor::View& view = frame.views[input];
        if (!carried_ || carried_view_.shape != view.shape || carried_view_.dtype != view.dtype) {
            throw std::logic_error(fmt::format("block {} does not take what the block before gives", frame.block.name));
        }
        frame.buffers[input] = std::move(carried_);
        view.data = frame.buffers[input].data();
    }
}

void Executor::run_block(const model::BlockUse& use, const TokenBatch& ids,
                         std::span<const std::int64_t> first_positions) {
    const plan::BlockPlan& block = plan_.blocks[static_cast<std::size_t>(use.block)];
    Frame frame{block,
                plan_.graph.blocks[static_cast<std::size_t>(use.block)],
                schedule_.blocks[static_cast<std::size_t>(use.block)],
                use.layer,
                std::vector<tensor::View>(block.values.size()),
                std::vector<Buffer>(block.values.size()),
                0};
    enter_block(use, ids, frame);
    for (std::size_t step = 0; step < block.steps.size();) {
        std::size_t end = step + 1;
        while (block.steps[step].loop != 0 && end < block.steps.size() &&
               block.steps[end].loop == block.steps[step].loop) {
            ++end;
        }
        run_loop(frame, step, end, first_positions);
        step = end;
    }
    const auto output = static_cast<std::size_t>(block.output);
    carried_view_ = frame.views[output];
    carried_ = std::move(frame.buffers[static_cast<std::size_t>(frame.schedule.owner[output])]);
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
    for (std::size_t step = first; step < end; ++step) {
        for (const ValueId id : frame.schedule.steps[step].release) {
            frame.buffers[static_cast<std::size_t>(id)] = Buffer();
            frame.views[static_cast<std::size_t>(id)].data = nullptr;
        }
    }
}

void Executor::run_step(Frame& frame, std::size_t index, std::span<const std::int64_t> first_positions) {
    const plan::Step& step = frame.block.steps[index];
    const StepSchedule& schedule = frame.schedule.steps[index];
    for (const ValueId id : schedule.allocate) {
        allocate(frame, id);
    }
    const auto set_alias = [&](ValueId id) {
        const auto owner = static_cast<std::size_t>(frame.schedule.owner[static_cast<std::size_t>(id)]);
        frame.views[static_cast<std::size_t>(id)].data = frame.views[owner].data;
    };
    const auto compute = [&] {
        run_compute({plan_, frame.block, frame.graph, frame.schedule, frame.layer, groups_.rank(), frame.pass, kernels_,
                     parameters_, allocator_, first_positions, frame.views},
                    *step.compute, schedule);
    };
    const auto start = std::chrono::steady_clock::now();
    if (step.compute) {
        std::for_each(step.compute->outputs.begin(), step.compute->outputs.end(), set_alias);
        compute();
    } else {
        const plan::CollectiveStep& collective = *step.collective;
        set_alias(collective.output);
        Buffer staging(allocator_, Category::communication, collective.staging_bytes);
        run_collective(groups_, frame.block, collective, frame.views,
                       {staging.data(), static_cast<std::size_t>(staging.bytes())});
    }
    count_time(schedule.timer, start);
    if (step.compute && is_routing(frame.graph, *step.compute)) {
        show_routing(frame, *step.compute, compute);
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
        return {carried_view_, {}, false, 0};
    }
    if (!carried_) {
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
    return {carried_view_, schedule_.blocks[block].ranges[output], first, plan_.graph.model.outputs()};
}

}  // namespace shardplan::exec
