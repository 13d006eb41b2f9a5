#include <fmt/format.h>

#include <utility>

#include "base/checked.h"
#include "plan/activation_specs.h"
#include "plan/fuse.h"
#include "plan/kv_heads.h"
#include "plan/layer_rules.h"
#include "plan/lower.h"
#include "plan/memory.h"
#include "plan/parameter_specs.h"
#include "plan/plan.h"
#include "plan/totals.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;

namespace {

/// Parameters that no rule of a table shards are reported above this fraction (MaxText's tolerance, its PR 628).
constexpr double tolerated_unsharded = 0.02;

Phase phase_of(const Job& job) {
    return job.workload.mode == model::Mode::prefill ? Phase::prefill : Phase::decode;
}

class Planning {
public:
    Planning(const Job& job, diag::Diagnostics& diagnostics)
        : diagnostics_(diagnostics), placer_(plan_.job, diagnostics) {
        plan_.job = job;
    }

    std::optional<Plan> run() {
        round_cache_length();
        model::check_workload(plan_.job.model, plan_.job.workload, diagnostics_);
        plan_.mesh = RefinedMesh(plan_.job.mesh, kv_head_splits(plan_.job, placer_, diagnostics_));
        if (!choose_provider() || diagnostics_.has_errors()) {
            check_placement();
            return std::nullopt;
        }
        build_graph();
        ActivationSpecs asks(plan_.job, plan_.mesh, token_parallel_, placer_);
        place(asks);
        if (diagnostics_.has_errors() || !lower(asks)) {
            return std::nullopt;
        }
        finish(asks);
        return std::move(plan_);
    }

private:
    /// Decode without a stated cache length: what the key axes need to divide it evenly.
    void round_cache_length() {
        model::Workload& workload = plan_.job.workload;
        if (workload.mode != model::Mode::decode || workload.cache_length > 0) {
            return;
        }
        const auto entry = plan_.job.partition_axis.resolve(Semantic::kv_length, Phase::train);
        const std::int64_t parts = placer_.size_of(placer_.existing_axes(entry, "kv_cache"));
        workload.cache_length = base::checked_mul(base::ceil_div(workload.cache_slots(), parts), parts);
        plan_.notes.push_back(fmt::format("cache_length not given: {} positions", workload.cache_length));
    }

    partition::SpecEntry head_axes() {
        return placer_.existing_axes(plan_.job.partition_axis.resolve(Semantic::head, phase_of(plan_.job)), "query");
    }

    /// Whether the tokens of a step can be cut over the head axes as well, as the inference provider needs.
    bool tokens_divisible(const partition::SpecEntry& heads) {
        const bool decode = plan_.job.workload.mode == model::Mode::decode;
        const auto entry =
            plan_.job.partition_axis.resolve(decode ? Semantic::batch : Semantic::length, phase_of(plan_.job));
        partition::SpecEntry axes = placer_.existing_axes(entry, "hidden");
        for (const std::string& name : heads) {
            std::erase(axes, name);
            axes.push_back(name);
        }
        const std::int64_t tokens = decode ? plan_.job.workload.batch_size : plan_.job.workload.sequence_length;
        return tokens % placer_.size_of(axes) == 0;
    }

    bool choose_provider() {
        const partition::SpecEntry heads = head_axes();
        backend::ProviderConditions conditions;
        conditions.tensor_parallel = placer_.size_of(heads);
        conditions.sequence_parallel = true;
        conditions.tokens_divisible = tokens_divisible(heads);
        const auto compat = compat_of(plan_.job);
        auto decision = backend::choose_provider(plan_.job.provider, compat, plan_.job.model, plan_.job.workload,
                                                 conditions, "/backend/provider", diagnostics_);
        if (!decision) {
            return false;
        }
        plan_.provider = std::move(*decision);
        if (plan_.provider.kind == backend::ProviderKind::inference && conditions.tensor_parallel > 1) {
            token_parallel_ = heads;
        }
        return true;
    }

    static backend::ProviderCompat compat_of(const Job& job) {
        return job.options.compat == partition::Compat::seed ? backend::ProviderCompat::seed
                                                             : backend::ProviderCompat::current;
    }

    void build_graph() {
        plan_.graph = model::build_graph(plan_.job.model, plan_.job.workload);
        if (plan_.job.rule_source != partition::RuleSource::derived) {
            rules_ = rule_table(plan_.job, diagnostics_);
        }
        if (rules_ && plan_.job.rule_source == partition::RuleSource::custom && rules_->depends_on_layer()) {
            split_layers(*rules_);
        }
    }

    void split_layers(const partition::RuleTable& rules) {
        constexpr std::int64_t most_matches = 1'000'000;
        const auto names = static_cast<std::int64_t>(plan_.graph.parameters.size()) * plan_.job.model.layer_count();
        const auto count = static_cast<std::int64_t>(rules.rules().size());
        if (names > most_matches / count) {
            diagnostics_.report("SP4005",
                                fmt::format("{} rules that can tell {} layers apart are more than this planner matches",
                                            count, plan_.job.model.layer_count()),
                                "/partition_rules", "write patterns without layer numbers");
            return;
        }
        split_layers_by_rules(plan_.graph, rules);
    }

    /// After an early error: what is wrong with the placement is reported as well, all at once.
    void check_placement() {
        build_graph();
        ActivationSpecs asks(plan_.job, plan_.mesh, {}, placer_);
        place(asks);
    }

    void place(ActivationSpecs& asks) {
        for (const model::Block& block : plan_.graph.blocks) {
            for (const model::TensorInfo& tensor : block.tensors) {
                if (tensor.kind != model::TensorKind::parameter) {
                    asks.ask(tensor.role, tensor.shape);
                }
            }
        }
        plan_.stored = place_stored_tensors(plan_.job, plan_.graph, plan_.mesh, rules_ ? &*rules_ : nullptr, placer_,
                                            asks, diagnostics_);
    }

    bool lower(ActivationSpecs& asks) {
        const auto provider = backend::make_provider(plan_.provider.kind, compat_of(plan_.job));
        partition::Resharder resharder(plan_.mesh.refined());
        const LoweringContext context{plan_.job, plan_.graph, plan_.mesh, plan_.stored, *provider, resharder, asks};
        for (std::size_t b = 0; b < plan_.graph.blocks.size(); ++b) {
            BlockPlan block = lower_block(static_cast<int>(b), context, diagnostics_);
            if (diagnostics_.has_errors()) {
                return false;
            }
            if (provider->fuse_layernorm_and_linear()) {
                fuse_steps(block, plan_.graph.blocks[b], *provider);
            }
            schedule_memory(block);
            plan_.blocks.push_back(std::move(block));
        }
        return true;
    }

    void finish(const ActivationSpecs& asks) {
        plan_.sequence = plan_.graph.sequence;
        plan_.activations = asks.described();
        plan_.collectives = collective_totals(plan_);
        plan_.memory = memory_per_device(plan_);
        plan_.totals = model_totals(plan_);
        plan_.notes.insert(plan_.notes.end(), placer_.notes().begin(), placer_.notes().end());
        plan_.notes.insert(plan_.notes.end(), plan_.job.model.notes.begin(), plan_.job.model.notes.end());
        if (plan_.job.rule_source != partition::RuleSource::derived && plan_.job.mesh.device_count() > 1 &&
            plan_.totals.unsharded_fraction > tolerated_unsharded) {
            diagnostics_.report("SP4006",
                                fmt::format("{:.1f} % of the parameters are not sharded by any rule",
                                            100.0 * plan_.totals.unsharded_fraction),
                                "/partition_rules", "\"derived\" shards every large weight");
        }
    }

    Plan plan_;
    diag::Diagnostics& diagnostics_;
    Placer placer_;
    partition::SpecEntry token_parallel_;
    std::optional<partition::RuleTable> rules_;
};

}  // namespace

std::optional<Plan> make_plan(const Job& job, diag::Diagnostics& diagnostics) {
    try {
        return Planning(job, diagnostics).run();
    } catch (const base::OverflowError& error) {
        diagnostics.report("SP2005", fmt::format("a size of this job does not fit in 64 bits: {}", error.what()),
                           "/model");
        return std::nullopt;
    }
}

}  // namespace shardplan::plan
