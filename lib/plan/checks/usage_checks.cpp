#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/checks/checks.h"
#include "plan/checks/size_hints.h"
#include "plan/front_end.h"
#include "plan/kv_heads.h"
#include "plan/totals.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;

namespace {

/// Parameters that nothing shards are reported above this fraction (MaxText's tolerance, its PR 628).
constexpr double tolerated_unsharded = 0.02;

mesh::AxisSet axes_of(const partition::Layout& layout) {
    mesh::AxisSet result;
    for (int d = 0; d < layout.rank; ++d) {
        result = result | layout[d].set();
    }
    return result;
}

std::int64_t instances_of(const StoredTensor& stored) {
    return static_cast<std::int64_t>(stored.layers.size());
}

/// Parameters that no axis cuts, largest first. With derived rules only those that a field could cut: norms, biases
/// after a sum and learned positions are replicated by design.
std::vector<const StoredTensor*> unsharded_parameters(const Plan& plan) {
    const bool derived = plan.job.rule_source == partition::RuleSource::derived;
    std::vector<const StoredTensor*> whole;
    for (const StoredTensor& stored : plan.stored) {
        if (stored.kind != StoredKind::parameter || stored.bytes_per_device != stored.bytes) {
            continue;
        }
        const model::Parameter& parameter = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)];
        if (!derived || parameter.parallel != model::ParallelDim::none) {
            whole.push_back(&stored);
        }
    }
    const auto bytes = [](const StoredTensor* s) {
        return static_cast<double>(s->bytes) * static_cast<double>(s->layers.size());
    };
    std::stable_sort(whole.begin(), whole.end(), [&](const auto* a, const auto* b) { return bytes(a) > bytes(b); });
    return whole;
}

bool is_kv(const Plan& plan, const StoredTensor& stored) {
    return stored.kind == StoredKind::cache ||
           plan.graph.parameters[static_cast<std::size_t>(stored.parameter)].parallel == model::ParallelDim::kv_heads;
}

std::string hint_for_unused(const Plan& plan, const std::string& axis) {
    const partition::SpecEntry experts = plan.job.partition_axis.resolve(Semantic::expert, Phase::train).axes;
    if (plan.job.model.moe.experts == 0 && std::find(experts.begin(), experts.end(), axis) != experts.end()) {
        return fmt::format("'{}' cuts experts and the model has none: give its devices to another axis", axis);
    }
    return fmt::format("name '{}' in a field of partition_axis, or give its devices to another axis", axis);
}

/// With the axis added the batch is cut over all axes of batch_axis.
std::string hint_for_storing(const CheckContext& context, const std::string& axis, std::int64_t size) {
    const Job& job = context.plan.job;
    const auto entry = job.partition_axis.resolve(Semantic::batch, phase_of(job));
    const std::int64_t axes = context.placer.size_of(context.placer.existing_axes(entry, "hidden"));
    const std::int64_t parts = base::checked_mul(base::checked_mul(size, axes), job.workload.micro_batches);
    return fmt::format("add '{}' to {}, with a batch_size that is a multiple of {}", axis, entry.field, parts);
}

}  // namespace

void check_unused_axes(const CheckContext& context) {
    const Plan& plan = context.plan;
    const mesh::AxisSet computing = context.asks.axes_used();
    mesh::AxisSet storing;
    for (const StoredTensor& stored : plan.stored) {
        storing = storing | axes_of(stored.layout);
    }
    for (int i = 0; i < plan.job.mesh.axis_count(); ++i) {
        const mesh::AxisId id{static_cast<std::uint8_t>(i)};
        const std::int64_t size = plan.job.mesh.size(id);
        const mesh::AxisSet parts = plan.mesh.parts(id).set();
        const bool pipeline = plan.pipeline_axis && parts.contains(*plan.pipeline_axis);
        if (size == 1 || pipeline || computing.intersects(parts)) {
            continue;
        }
        const std::string& name = plan.job.mesh.name(id);
        const std::string pointer = "/mesh/axes/" + diag::escape_pointer(name);
        if (storing.intersects(parts)) {
            context.diagnostics.report(
                "SP4010",
                fmt::format("mesh axis '{}' (size {}) stores weights but cuts no activation: its {} devices get the "
                            "same tokens",
                            name, size, size),
                pointer, hint_for_storing(context, name, size));
        } else {
            context.diagnostics.report(
                "SP3004",
                fmt::format("mesh axis '{}' (size {}) cuts no tensor of this job: its {} devices hold and compute the "
                            "same",
                            name, size, size),
                pointer, hint_for_unused(plan, name));
        }
    }
}

namespace {

/// Why Megatron-Core would not take fewer key/value heads than devices; empty where it does. Semantics 2.7, row 2b, and
/// the even cut of its joined QKV weight (2.4).
std::string megatron_refuses_sharing(const Job& job, std::int64_t devices) {
    const model::AttentionSpec& attention = job.model.attention;
    if (attention.is_latent()) {
        return "";
    }
    if (job.options.compat == partition::Compat::seed) {
        return "Megatron-Core before 0.16 refuses it (num_query_groups must be a multiple of the devices)";
    }
    const std::int64_t units = base::checked_add(attention.heads, base::checked_mul(2, attention.kv_heads));
    const std::int64_t rows = base::checked_mul(units, attention.head_dim);
    return rows % devices == 0
               ? ""
               : fmt::format(
                     "Megatron-Core refuses it, as the ({} + 2 * {}) * {} = {} rows of its joined QKV weight are "
                     "no multiple of {}",
                     attention.heads, attention.kv_heads, attention.head_dim, rows, devices);
}

}  // namespace

void check_kv_replication(const CheckContext& context) {
    const Plan& plan = context.plan;
    const Job& job = plan.job;
    const std::int64_t heads = job.model.attention.kv_heads;
    const auto entry = job.partition_axis.resolve(Semantic::kv_head, Phase::train);
    const partition::SpecEntry axes = context.placer.existing_axes(entry, "key");
    const std::int64_t devices = context.placer.size_of(axes);
    if (devices <= heads || devices % heads != 0 || job.rule_source != partition::RuleSource::derived) {
        return;
    }
    const mesh::AxisList cut = dividing_prefix(plan.mesh.refine(axes), heads, plan.mesh.refined());
    if (plan.mesh.refined().size(cut) != heads) {
        return;  // not shared evenly: SP4004 has said that the entry is dropped
    }
    const bool split = job.options.kv_heads == KvHeads::split;
    std::int64_t bytes = 0;
    for (const StoredTensor& stored : plan.stored) {
        if (is_kv(plan, stored) && !(split && stored.kind == StoredKind::parameter)) {
            bytes = base::checked_add(bytes, base::checked_mul(stored.bytes_per_device, instances_of(stored)));
        }
    }
    const std::int64_t copies = devices / heads;
    const std::int64_t wasted = bytes - bytes / copies;
    const std::string refused = megatron_refuses_sharing(job, devices);
    const std::string over =
        fmt::format("num_key_value_heads {} over {} {}", heads, entry.field, describe_axes(axes, job.mesh));
    const std::string hint =
        fmt::format("sizes up to {} hold each head once; use the other factor {} for batch or sequence", heads, copies);
    if (wasted > 0) {
        context.diagnostics.report(
            "SP4012",
            fmt::format("{}: each head is held by {} devices, {} bytes per device more than an even cut would need{}{}",
                        over, copies, wasted, refused.empty() ? "" : "; ", refused),
            context.placer.pointer_of(entry), hint);
    } else if (!refused.empty()) {
        context.diagnostics.report("SP5003",
                                   fmt::format("{}: {} devices compute with each head; {}", over, copies, refused),
                                   context.placer.pointer_of(entry), hint);
    }
}

namespace {

/// The spec that the rules of the job give the token embedding, and the rule; nullptr when no rule decides it.
const StoredTensor* ruled_embedding(const Plan& plan) {
    for (const StoredTensor& stored : plan.stored) {
        if (stored.kind == StoredKind::parameter && stored.rule >= 0 &&
            plan.graph.parameters[static_cast<std::size_t>(stored.parameter)].kind == model::ParameterKind::embedding) {
            return &stored;
        }
    }
    return nullptr;
}

/// Which rules of the job decide the place of a parameter.
std::vector<bool> deciding_rules(const Plan& plan) {
    const Job& job = plan.job;
    std::vector<bool> used(job.custom_rules.size(), job.rule_source != partition::RuleSource::custom);
    for (const StoredTensor& stored : plan.stored) {
        if (stored.rule >= 0 && static_cast<std::size_t>(stored.rule) < used.size()) {
            used[static_cast<std::size_t>(stored.rule)] = true;
        }
    }
    return used;
}

/// The specs of the embedding and of the tied head where rule `index`, which decides no other tensor, is the first that
/// finds the head and gives it another spec. As the rules write them: entries that were refused are none in the plan.
struct TiedConflict {
    const StoredTensor* embedding = nullptr;
    partition::PartitionSpec of_embedding;
    partition::PartitionSpec of_head;
};
std::optional<TiedConflict> tied_conflict(const CheckContext& context, std::size_t index) {
    const Job& job = context.plan.job;
    const StoredTensor* embedding = ruled_embedding(context.plan);
    const partition::ParameterRule& rule = job.custom_rules[index];
    if (!job.model.tied_embeddings || embedding == nullptr ||
        static_cast<std::size_t>(embedding->rule) >= job.custom_rules.size()) {
        return std::nullopt;
    }
    diag::Diagnostics unheard;  // patterns that do not compile were reported with the table
    const auto match = partition::RuleTable::compile({rule}, unheard);
    if (!match || !match->match(job.model.names.lm_head + ".weight")) {
        return std::nullopt;
    }
    TiedConflict conflict{embedding, job.custom_rules[static_cast<std::size_t>(embedding->rule)].spec, rule.spec};
    const std::size_t rank = std::max(conflict.of_head.entries.size(), embedding->spec.entries.size());
    conflict.of_head.entries.resize(rank);
    conflict.of_embedding.entries.resize(std::max(rank, conflict.of_embedding.entries.size()));
    return conflict.of_head.entries == conflict.of_embedding.entries ? std::nullopt : std::optional(conflict);
}

}  // namespace

void check_tied_rules(const CheckContext& context) {
    const Job& job = context.plan.job;
    const std::vector<bool> used = deciding_rules(context.plan);
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto conflict = used[i] ? std::nullopt : tied_conflict(context, i);
        if (!conflict) {
            continue;
        }
        const partition::ParameterRule& rule = job.custom_rules[i];
        const std::string wanted = partition::to_string(conflict->of_embedding);
        context.diagnostics.report(
            "SP4015",
            fmt::format("rule {} '{}' gives the output head {}, rule {} gives {} {}: the embeddings are tied, one "
                        "tensor needs one spec",
                        i, rule.pattern, partition::to_string(conflict->of_head), conflict->embedding->rule,
                        conflict->embedding->name, wanted),
            rule.pointer, fmt::format("write {} in both, or remove rule {}", wanted, i));
    }
}

void check_unused_rules(const CheckContext& context) {
    const Job& job = context.plan.job;
    const std::vector<bool> used = deciding_rules(context.plan);
    for (std::size_t i = 0; i < used.size(); ++i) {
        const partition::ParameterRule& rule = job.custom_rules[i];
        if (!used[i] && !tied_conflict(context, i)) {
            const bool head = job.model.tied_embeddings && rule.pattern.find("lm_head") != std::string::npos;
            context.diagnostics.report(
                "SP4013",
                fmt::format("rule {} '{}' decides the place of no parameter{}", i, rule.pattern,
                            head ? ": lm_head is tied to the token embedding, one tensor with one spec" : ""),
                rule.pointer, "the first rule whose pattern is found in a checkpoint name decides; order matters");
        }
    }
}

void check_unsharded_parameters(const CheckContext& context) {
    const Plan& plan = context.plan;
    const bool derived = plan.job.rule_source == partition::RuleSource::derived;
    const bool any_sharded = std::any_of(plan.stored.begin(), plan.stored.end(), [](const StoredTensor& stored) {
        return stored.kind == StoredKind::parameter && stored.bytes_per_device < stored.bytes;
    });
    // Derived without any cut is plain data parallelism: wanted, not forgotten.
    if (plan.job.mesh.device_count() == 1 || (derived && !any_sharded)) {
        return;
    }
    double unsharded = 0.0;
    std::vector<std::string> names;
    for (const StoredTensor* stored : unsharded_parameters(plan)) {
        unsharded += static_cast<double>(stored->bytes) * static_cast<double>(instances_of(*stored));
        if (names.size() < 3) {
            names.push_back(stored->name);
        }
    }
    const double fraction = unsharded / static_cast<double>(model_totals(plan).parameter_bytes);
    if (fraction > tolerated_unsharded) {
        context.diagnostics.report(
            "SP4006",
            fmt::format("{:.1f} % of the parameters are not sharded{}, more than the tolerated {:.0f} %: {}",
                        100.0 * fraction, derived ? "" : " by any rule", 100.0 * tolerated_unsharded,
                        fmt::join(names, ", ")),
            derived ? "/partition_axis" : "/partition_rules",
            derived ? "give the field of their dimension an axis (vocab_axis, mlp_intermediate_axis, head_axis)"
                    : "\"derived\" shards every large weight");
    }
}

}  // namespace shardplan::plan
