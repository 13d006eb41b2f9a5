#include "plan/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "partition/partition_axis.h"
#include "plan/placement.h"

namespace shardplan::plan {
namespace {

constexpr const char* default_axis = "pp";

bool names_axis(const partition::SpecEntry& entry, const std::string& axis) {
    return std::find(entry.begin(), entry.end(), axis) != entry.end();
}

std::optional<std::vector<std::int64_t>> given_layers(const Job& job, std::int64_t stages,
                                                      diag::Diagnostics& diagnostics) {
    const std::vector<std::int64_t>& given = job.pipeline->layers;
    const std::int64_t layers = job.model.layer_count();
    const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
    if (std::ssize(given) == stages && sum == layers) {
        return given;
    }
    diagnostics.report(
        "SP3005",
        fmt::format("pipeline.layers [{}] has {} stages with {} layers, the axis has {} and the model {}",
                    fmt::join(given, ", "), given.size(), sum, stages, layers),
        "/pipeline/layers", fmt::format("give {} numbers that add up to {}", stages, layers));
    return std::nullopt;
}

/// The layers and what counts as one.
std::int64_t counted_layers(const Pipeline& pipeline, std::int64_t layers) {
    return layers + (pipeline.account_for_embedding ? 1 : 0) + (pipeline.account_for_loss ? 1 : 0);
}

std::vector<std::int64_t> even_layers(const Pipeline& pipeline, std::int64_t layers, std::int64_t stages) {
    const std::int64_t first = pipeline.account_for_embedding ? 1 : 0;
    const std::int64_t last = pipeline.account_for_loss ? 1 : 0;
    const std::int64_t total = counted_layers(pipeline, layers);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), total / stages);
    for (std::int64_t i = 0; i < total % stages; ++i) {
        counts[static_cast<std::size_t>(pipeline.remainder_last ? stages - 1 - i : i)] += 1;
    }
    counts.front() -= first;
    counts.back() -= last;
    return counts;
}

void note_unequal(const Pipeline& pipeline, const std::string& axis, std::int64_t layers, std::int64_t stages,
                  diag::Diagnostics& diagnostics) {
    const std::int64_t total = counted_layers(pipeline, layers);
    if (const std::int64_t longer = total % stages; longer != 0) {
        diagnostics.report("SP3006",
                           fmt::format("{}{} are no multiple of the {} stages of {}: the {} {} one more", total,
                                       total == layers ? " layers" : " layers (embedding and head counted as stated)",
                                       stages, axis, pipeline.remainder_last ? "last" : "first",
                                       longer == 1 ? "has" : fmt::format("{} have", longer)),
                           "/mesh/axes/" + diag::escape_pointer(axis),
                           fmt::format("sizes of {} without a remainder: {}", axis, divisors_text(total)));
    }
}

const BlockPlan& block_of(const Plan& plan, int use) {
    return plan.blocks[static_cast<std::size_t>(plan.graph.sequence[static_cast<std::size_t>(use)].block)];
}

void add_instances(const StoredTensor& stored, std::int64_t count, MemoryPerDevice& memory) {
    std::int64_t& slot = stored.kind == StoredKind::cache ? memory.cache : memory.parameters;
    slot = base::checked_add(slot, base::checked_mul(count, stored.bytes_per_device));
}

void add_stored_memory(const Plan& plan, Stage& stage) {
    if (!plan.pipeline_axis) {  // one stage holds everything: nothing grows with the layers
        for (const StoredTensor& stored : plan.stored) {
            add_instances(stored, std::ssize(stored.layers), stage.memory);
        }
        return;
    }
    const StageTensors of_stage(plan, stage);
    for (const auto& [index, layer] : of_stage.held()) {
        add_instances(plan.stored[static_cast<std::size_t>(index)], 1, stage.memory);
    }
}

void add_lowered(const Plan& plan, Stage& stage) {
    stage.memory.arena = stage.memory.activations = stage.memory.communication = 0;
    stage.flops_per_device = 0.0;
    for (int use = stage.first; use < stage.end; ++use) {
        const BlockPlan& block = block_of(plan, use);
        stage.memory.arena = std::max(stage.memory.arena, block.arena_bytes);
        stage.memory.activations = std::max(stage.memory.activations, block.peak_activation_bytes);
        stage.memory.communication = std::max(stage.memory.communication, block.peak_communication_bytes);
        for (const Step& step : block.steps) {
            stage.flops_per_device += step.compute ? step.compute->flops * static_cast<double>(step.times) : 0.0;
        }
    }
}

/// What a device of the stage hands on, per micro-batch.
std::int64_t handed_on(const Plan& plan, const Stage& stage) {
    const BlockPlan& block = block_of(plan, stage.end - 1);
    return block.values[static_cast<std::size_t>(block.output)].local_bytes;
}

}  // namespace

std::optional<std::string> field_naming(const Job& job, const std::string& axis) {
    for (const partition::FieldInfo& field : partition::PartitionAxis::fields(job.partition_axis.compat())) {
        const partition::ResolvedEntry value = job.partition_axis.value(field.name);
        if (value.given && names_axis(value.axes, axis)) {
            return std::string(field.name);
        }
    }
    for (const partition::ParameterRule& rule : job.custom_rules) {
        if (std::any_of(rule.spec.entries.begin(), rule.spec.entries.end(),
                        [&](const auto& entry) { return names_axis(entry, axis); })) {
            return fmt::format("rule '{}'", rule.pattern);
        }
    }
    return std::nullopt;
}

std::optional<std::string> pipeline_axis(const Job& job) {
    if (job.pipeline) {
        return job.mesh.find(job.pipeline->axis) ? std::optional(job.pipeline->axis) : std::nullopt;
    }
    if (!job.mesh.find(default_axis) || field_naming(job, default_axis)) {
        return std::nullopt;
    }
    return default_axis;
}

std::optional<std::vector<std::int64_t>> stage_layers(const Job& job, std::int64_t stages,
                                                      diag::Diagnostics& diagnostics) {
    if (job.pipeline && !job.pipeline->layers.empty()) {
        return given_layers(job, stages, diagnostics);
    }
    const std::int64_t layers = job.model.layer_count();
    const Pipeline pipeline = job.pipeline.value_or(Pipeline{});
    const std::string axis = pipeline_axis(job).value_or(default_axis);
    std::vector<std::int64_t> counts;
    if (stages <= layers) {
        counts = even_layers(pipeline, layers, stages);
    }
    if (counts.empty() || *std::min_element(counts.begin(), counts.end()) < 1) {
        diagnostics.report(
            "SP3005", fmt::format("{} layers over {} pipeline stages leave a stage without a layer", layers, stages),
            "/mesh/axes/" + diag::escape_pointer(axis),
            stages > layers ? fmt::format("a size of {} up to {} works", axis, layers)
                            : "embedding and head count as layers here: use fewer stages, or give pipeline.layers");
        return std::nullopt;
    }
    note_unequal(pipeline, axis, layers, stages, diagnostics);
    return counts;
}

StageTensors::StageTensors(const Plan& plan, const Stage& stage) {
    for (std::size_t i = 0; i < plan.stored.size() && !plan.pipeline_axis; ++i) {
        for (const int layer : plan.stored[i].layers) {
            held_.insert({static_cast<int>(i), layer});
        }
    }
    if (!plan.pipeline_axis) {
        return;
    }
    for (int use = stage.first; use < stage.end; ++use) {
        const model::BlockUse& where = plan.graph.sequence[static_cast<std::size_t>(use)];
        for (const model::TensorInfo& tensor : plan.graph.blocks[static_cast<std::size_t>(where.block)].tensors) {
            if (tensor.kind == model::TensorKind::parameter) {  // stored in the order of the graph's parameters
                held_.insert({tensor.parameter, where.layer});
            }
        }
        for (std::size_t i = plan.graph.parameters.size(); i < plan.stored.size(); ++i) {
            if (plan.stored[i].block == where.block) {
                held_.insert({static_cast<int>(i), where.layer});
            }
        }
    }
}

void deal_out_layers(Plan& plan, diag::Diagnostics& diagnostics) {
    std::vector<std::int64_t> layers = {plan.job.model.layer_count()};
    if (const std::optional<std::string> axis = pipeline_axis(plan.job)) {
        plan.pipeline_axis = plan.mesh.refined().find(*axis);
        const auto dealt = stage_layers(plan.job, plan.mesh.refined().size(*plan.pipeline_axis), diagnostics);
        layers = dealt.value_or(layers);
    }
    int layer = 0;
    for (std::size_t s = 0; s < layers.size(); ++s) {
        Stage stage;  // use 0 is the embedding, the last one the head
        stage.first = s == 0 ? 0 : layer + 1;
        stage.first_layer = layer;
        layer += static_cast<int>(layers[s]);
        stage.end_layer = layer;
        stage.end = s + 1 == layers.size() ? static_cast<int>(plan.graph.sequence.size()) : layer + 1;
        add_stored_memory(plan, stage);
        plan.stages.push_back(stage);
    }
}

void count_stored_memory(Plan& plan) {
    for (Stage& stage : plan.stages) {
        stage.memory.parameters = stage.memory.cache = 0;
        add_stored_memory(plan, stage);
    }
}

void count_stage_copies(Plan& plan) {
    for (std::size_t i = 0; i < plan.stored.size() && plan.pipeline_axis; ++i) {
        StoredTensor& stored = plan.stored[i];
        const auto holders = std::count_if(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
            return StageTensors(plan, stage).holds(static_cast<int>(i), stored.layers.front());
        });
        if (holders > 1) {
            stored.replicas *= holders;
            stored.reason += fmt::format(", held by {} stages", holders);
        }
    }
}

void finish_stages(Plan& plan) {
    for (Stage& stage : plan.stages) {
        add_lowered(plan, stage);
        if (&stage != &plan.stages.back()) {
            stage.sent_bytes = handed_on(plan, stage);
        }
    }
}

std::size_t stage_of(const Plan& plan, std::int64_t rank) {
    return plan.pipeline_axis ? static_cast<std::size_t>(plan.mesh.refined().coordinate(rank, *plan.pipeline_axis)) : 0;
}

std::int64_t stage_devices(const Plan& plan) {
    return plan.mesh.refined().device_count() / static_cast<std::int64_t>(plan.stages.size());
}

}  // namespace shardplan::plan
