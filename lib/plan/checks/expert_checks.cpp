#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/checks/checks.h"
#include "plan/front_end.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;
using partition::SpecEntry;

void check_expert_options(const CheckContext& context) {
    const Job& job = context.plan.job;
    const auto report = [&](const char* field, const char* why) {
        context.diagnostics.report("SP5005", fmt::format("{} has no effect: {}", field, why),
                                   fmt::format("/backend/{}", field), fmt::format("remove {}", field));
    };
    if (job.model.moe.experts == 0) {
        constexpr const char* why = "the model has no experts";
        if (job.dispatcher != TokenDispatcher::automatic) {
            report("moe_token_dispatcher_type", why);
        }
        if (job.experts.use_grouped_gemm) {
            report("moe_use_grouped_gemm", why);
        }
        if (job.experts.use_legacy_grouped_gemm) {
            report("moe_use_legacy_grouped_gemm", why);
        }
    } else if (job.experts.use_legacy_grouped_gemm && !job.experts.use_grouped_gemm.value_or(true)) {
        report("moe_use_legacy_grouped_gemm", "moe_use_grouped_gemm is false, so that experts run one after the other");
    }
}

void check_dispatcher(const CheckContext& context) {
    const Job& job = context.plan.job;
    if (job.dispatcher != TokenDispatcher::all_to_all || job.model.moe.experts == 0 ||
        job.rule_source != partition::RuleSource::derived) {
        return;
    }
    const auto axes = [&](Semantic semantic, Phase phase) {
        return context.placer.existing_axes(job.partition_axis.resolve(semantic, phase), "experts");
    };
    const SpecEntry experts = axes(Semantic::expert, Phase::train);
    const SpecEntry batch = axes(Semantic::batch, phase_of(job));
    const SpecEntry sequence =
        axes(partition::is_generation(phase_of(job)) ? Semantic::query_length : Semantic::length, phase_of(job));
    const auto cuts_tokens = [&](const std::string& axis) {
        const auto in = [&](const SpecEntry& entry) {
            return std::find(entry.begin(), entry.end(), axis) != entry.end();
        };
        return context.placer.size_of({axis}) > 1 && (in(batch) || in(sequence));
    };
    if (context.placer.size_of(experts) == 1 || std::any_of(experts.begin(), experts.end(), cuts_tokens)) {
        return;
    }
    context.diagnostics.report(
        "SP5004",
        fmt::format(
            "moe_token_dispatcher_type is alltoall, but no axis of the experts ({}) cuts tokens: allgather is used",
            describe_axes(experts, job.mesh)),
        "/backend/moe_token_dispatcher_type",
        fmt::format("cut the tokens over {} too (batch_axis or sequence_axis)", fmt::join(experts, ", ")));
}

}  // namespace shardplan::plan
