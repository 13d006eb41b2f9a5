#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "plan/checks/checks.h"
#include "plan/front_end.h"
#include "plan/memory.h"
#include "plan/pipeline.h"
#include "plan/plan.h"
#include "plan/plan_block.h"
#include "plan/totals.h"
#include "plan/weight_format.h"

namespace shardplan::plan {

namespace {

bool lower(FrontEnd& front, Goal goal, diag::Diagnostics& diagnostics) {
    Plan& plan = front.plan();
    plan.blocks.clear();
    const std::size_t errors = diagnostics.error_count();
    const auto provider = backend::make_provider(plan.provider.kind, provider_compat(plan.job), plan.job.experts);
    partition::Resharder resharder(plan.mesh.refined());
    const LoweringContext context{plan.job,  plan.graph, plan.mesh,    plan.stored,
                                  *provider, resharder,  front.asks(), plan.token_order};
    for (std::size_t b = 0; b < plan.graph.blocks.size(); ++b) {
        BlockPlan block = plan_block(static_cast<int>(b), context, goal, diagnostics);
        if (diagnostics.error_count() > errors) {
            return false;
        }
        plan.blocks.push_back(std::move(block));
    }
    return true;
}

void finish(FrontEnd& front) {
    Plan& plan = front.plan();
    plan.sequence = plan.graph.sequence;
    plan.activations = front.asks().described();
    finish_stages(plan);
    if (plan.job.int8_weights) {
        settle_weight_formats(plan);
    }
    plan.collectives = collective_totals(plan);
    plan.memory = memory_per_device(plan);
    plan.totals = model_totals(plan);
}

bool has_choice(const Plan& plan) {
    return plan.job.options.cp_comm_type == CpCommType::automatic &&
           std::any_of(plan.blocks.begin(), plan.blocks.end(),
                       [](const BlockPlan& block) { return block.attention.has_value(); });
}

std::optional<Plan> try_make_plan(const Job& job, diag::Diagnostics& diagnostics) {
    FrontEnd front(job, diagnostics);
    if (!front.run() || !lower(front, Goal::wire_bytes, diagnostics)) {
        return std::nullopt;
    }
    finish(front);
    if (job.device_memory && front.plan().memory.total() > *job.device_memory && has_choice(front.plan())) {
        lower(front, Goal::memory, diagnostics);
        finish(front);
    }
    if (!check_memory(front.plan(), diagnostics)) {
        return std::nullopt;
    }
    if (job.int8_weights) {
        check_any_int8(front.plan(), diagnostics);
        front.plan().notes.push_back(weight_format_note(front.plan()));
    }
    return std::move(front.plan());
}

}  // namespace

std::optional<Plan> make_plan(const Job& job, diag::Diagnostics& diagnostics) {
    try {
        return try_make_plan(job, diagnostics);
    } catch (const base::OverflowError& error) {
        report_overflow(error, diagnostics);
        return std::nullopt;
    }
}

}  // namespace shardplan::plan
