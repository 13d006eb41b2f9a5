// What holds in every plan: lifetimes, memory, sums. Checked on random jobs, with counts of our own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/job_reader.h"
#include "model/op_rule.h"
#include "plan/arena.h"
#include "plan/lifetime_walk.h"
#include "plan/pipeline.h"
#include "plan/plan.h"
#include "plan/random_jobs.h"
#include "report/plan_json.h"

namespace shardplan::plan {

namespace {

Job read_job(const std::string& json) {
    diag::Diagnostics diagnostics;
    const auto job = config::read_job({"random", json, ""}, {}, diagnostics);
    for (const diag::Diagnostic& d : diagnostics.all()) {
        INFO(d.code << " " << d.message);
        CHECK(d.severity != diag::Severity::error);
    }
    REQUIRE(job.has_value());
    return *job;
}

std::string json_of(const Plan& plan) {
    std::ostringstream out;
    report::write_plan_json(out, plan, {});
    return out.str();
}

void check_values(const Plan& plan, const BlockPlan& block) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    for (const Value& value : block.values) {
        CAPTURE(value.name);
        CHECK(is_consistent(value.layout));
        CHECK(divides(value.layout, value.shape, mesh));
        CHECK(value.local_shape == local_shape(value.layout, value.shape, mesh));
        std::int64_t bytes = tensor::byte_count(value.local_shape, value.dtype);
        if (value.dtype == tensor::DType::i8) {  // a scale for each local output
            const auto parameter =
                static_cast<std::size_t>(plan.stored[static_cast<std::size_t>(value.stored)].parameter);
            bytes += 4 * value.local_shape[plan.graph.parameters[parameter].transposed ? 1 : 0];
        }
        CHECK(value.local_bytes == bytes);
    }
    for (const Step& step : block.steps) {
        if (!step.compute || step.compute->kind != ComputeKind::op) {
            continue;
        }
        const model::Block& graph = plan.graph.blocks[static_cast<std::size_t>(block.block)];
        const model::OpRule rule = model::rule_of(graph.ops[static_cast<std::size_t>(step.compute->op)], graph);
        for (std::size_t i = 0; i < step.compute->inputs.size(); ++i) {
            const Value& value = block.values[static_cast<std::size_t>(step.compute->inputs[i])];
            CHECK_MESSAGE((rule.passes(i) || value.layout.pending.empty()), value.name << " is still a partial sum");
        }
    }
}

void check_chain(const Plan& plan) {
    const Value* carried = nullptr;
    for (const model::BlockUse& use : plan.sequence) {
        const BlockPlan& block = plan.blocks[static_cast<std::size_t>(use.block)];
        if (carried != nullptr) {
            const Value& input = block.values[static_cast<std::size_t>(block.input.value())];
            CHECK(input.layout == carried->layout);
            CHECK(input.shape == carried->shape);
        }
        carried = &block.values[static_cast<std::size_t>(block.output)];
        CHECK(carried->layout.pending.empty());
    }
    CHECK(carried->shape.back() == plan.graph.model.vocab_rows());
}

/// Every stage holds what its layers use, and the plan's memory is that of the heaviest.
void check_stages(const Plan& plan) {
    std::int64_t heaviest = 0;
    int layers = 0;
    for (const plan::Stage& stage : plan.stages) {
        MemoryPerDevice memory;
        for (std::size_t i = 0; i < plan.stored.size(); ++i) {
            const StoredTensor& stored = plan.stored[i];
            for (const int layer : stored.layers) {
                const bool inside = layer >= stage.first_layer && layer < stage.end_layer;
                const bool held = plan::StageTensors(plan, stage).holds(static_cast<int>(i), layer);
                CHECK((layer < 0 || held == inside));
                (stored.kind == StoredKind::cache ? memory.cache : memory.parameters) +=
                    held ? stored.bytes_per_device : 0;
            }
        }
        CHECK(stage.memory.parameters == memory.parameters);
        CHECK(stage.memory.cache == memory.cache);
        heaviest = std::max(heaviest, stage.memory.total());
        CHECK(stage.first_layer == layers);
        layers = stage.end_layer;
    }
    CHECK(layers == plan.graph.model.layer_count());
    CHECK(plan.memory.total() == heaviest);
}

void check_stored(const Plan& plan) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    std::int64_t elements = 0;
    for (const StoredTensor& stored : plan.stored) {
        CAPTURE(stored.name);
        const std::int64_t shards = shard_count(stored.layout, mesh);
        CHECK(divides(stored.layout, stored.shape, mesh));
        CHECK(stored.layout.pending.empty());
        std::int64_t scales = 0;
        std::int64_t local_scales = 0;
        if (stored.dtype == tensor::DType::i8) {  // of all outputs for each part of the inputs
            const auto parameter = static_cast<std::size_t>(stored.parameter);
            const std::size_t output = plan.graph.parameters[parameter].transposed ? 1 : 0;
            scales = 4 * stored.shape[output];
            local_scales = 4 * stored.local_shape[output];
        }
        CHECK(stored.bytes == tensor::byte_count(stored.shape, stored.dtype) + scales);
        CHECK((stored.bytes_per_device - local_scales) * shards == stored.bytes - scales);
        const auto index = static_cast<int>(&stored - plan.stored.data());
        const auto holders = std::count_if(plan.stages.begin(), plan.stages.end(), [&](const plan::Stage& stage) {
            return plan::StageTensors(plan, stage).holds(index, stored.layers.front());
        });
        CHECK((stored.layers.front() >= 0 ||
               stored.replicas * shards * std::ssize(plan.stages) == mesh.device_count() * holders));
        if (stored.kind == StoredKind::parameter) {
            const auto& parameter = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)];
            elements += std::ssize(stored.layers) * tensor::element_count(model::without_padding(parameter).shape);
        }
    }
    CHECK(elements == model::parameter_count(plan.graph));
    CHECK(plan.totals.parameters == elements);
    check_stages(plan);
}

/// Collectives of every block of the sequence, one after the other.
void check_totals(const Plan& plan) {
    std::map<std::pair<mesh::CollectiveKind, std::vector<std::string>>, std::vector<std::int64_t>> sums;
    for (const model::BlockUse& use : plan.sequence) {
        for (const Step& step : plan.blocks[static_cast<std::size_t>(use.block)].steps) {
            if (step.collective && step.collective->kind != mesh::CollectiveKind::slice) {
                const CollectiveStep& c = *step.collective;
                std::vector<std::int64_t>& sum = sums[{c.kind, c.names}];
                sum.resize(4);
                sum[0] += step.times;
                sum[1] += step.times * c.payload_bytes;
                sum[2] += step.times * c.wire_bytes;
                sum[3] += step.times * c.wire_bytes_total / std::ssize(plan.stages);
                CHECK(c.group_size == plan.mesh.refined().size(c.axes));
                CHECK(c.group_size > 1);
            }
        }
    }
    if (plan.stages.size() > 1) {
        std::vector<std::int64_t>& sends = sums[{mesh::CollectiveKind::send, {"pp"}}];
        const std::int64_t bytes = plan.stages.front().sent_bytes;
        const auto count = std::ssize(plan.stages) - 1;
        sends = {count, bytes, bytes, count * bytes * plan::stage_devices(plan)};
    }
    REQUIRE(plan.collectives.size() == sums.size());
    for (const CollectiveTotal& total : plan.collectives) {
        const std::vector<std::int64_t> expected = {total.count, total.payload_bytes, total.wire_bytes,
                                                    total.wire_bytes_total};
        CHECK(sums.at({total.kind, total.axes}) == expected);
    }
}

void check_plan(const Plan& plan) {
    for (const BlockPlan& block : plan.blocks) {
        CAPTURE(block.name);
        Walk walk(block);
        walk.run();
        CHECK((walk.undefined() == 0 || plan.provider.kind != backend::ProviderKind::local));
        check_loops(block);
        check_values(plan, block);
        CHECK(std::any_of(plan.stages.begin(), plan.stages.end(), [&](const plan::Stage& stage) {
            return stage.memory.activations >= block.peak_activation_bytes;
        }));
        CHECK(std::any_of(plan.stages.begin(), plan.stages.end(), [&](const plan::Stage& stage) {
            return stage.memory.communication >= block.peak_communication_bytes;
        }));
        CHECK(std::any_of(plan.stages.begin(), plan.stages.end(),
                          [&](const plan::Stage& stage) { return stage.memory.arena >= block.arena_bytes; }));
    }
    check_chain(plan);
    check_stored(plan);
    check_totals(plan);
}

}  // namespace

TEST_CASE("every plan of a random job holds together, and the next is the same") {
    int accepted = 0;
    int refused = 0;
    std::set<std::string> codes;
    std::map<CpCommType, int> ways;
    int zigzags = 0;
    for (const std::int64_t devices : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64}) {
        test::RandomJobs jobs(7, devices);
        for (int i = 0; i < 100; ++i) {
            const std::string json = jobs.next();
            INFO(json);
            const Job job = read_job(json);
            diag::Diagnostics diagnostics;
            const auto plan = make_plan(job, diagnostics);
            CHECK(plan.has_value() != diagnostics.has_errors());
            for (const diag::Diagnostic& d : diagnostics.all()) {
                codes.insert(d.code);
                CHECK_FALSE(d.message.empty());
            }
            if (!plan) {
                ++refused;
                continue;
            }
            ++accepted;
            check_plan(*plan);
            zigzags += plan->token_order.plain() ? 0 : 1;
            for (const BlockPlan& block : plan->blocks) {
                if (block.attention) {
                    ++ways[block.attention->type];
                }
            }
            if (i % 4 == 0) {
                diag::Diagnostics again;
                CHECK(json_of(*plan) == json_of(make_plan(job, again).value()));
                CHECK(diagnostics.all().size() == again.all().size());
            }
        }
    }
    CHECK(accepted > 250);
    CHECK(refused > 30);
    CHECK(zigzags > 10);
    for (const CpCommType type : {CpCommType::all_gather, CpCommType::p2p, CpCommType::a2a}) {
        CHECK_MESSAGE(ways[type] > 5, to_string(type));
    }
    for (const char* code : {"SP4001", "SP4003", "SP4004"}) {
        CHECK_MESSAGE(codes.contains(code), code);
    }
}

}  // namespace shardplan::plan
