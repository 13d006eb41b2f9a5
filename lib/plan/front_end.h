// The passes before lowering: workload, key/value heads, provider, graph, and the placement of everything that is
// stored or asked for, then the checks of plan/checks. What they refuse no plan exists for; check_job stops here,
// make_plan goes on. Costs nothing that grows with devices or layers.
#pragma once

#include <memory>
#include <optional>

#include "diag/diagnostic.h"
#include "partition/rules.h"
#include "plan/activation_specs.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace shardplan::plan {

class FrontEnd {
public:
    FrontEnd(const Job& job, diag::Diagnostics& diagnostics);
    FrontEnd(const FrontEnd&) = delete;
    FrontEnd& operator=(const FrontEnd&) = delete;

    /// False when there are errors; all of them are reported. Throws base::OverflowError.
    bool run();

    /// After run(): job, graph, mesh, provider, stored and notes are filled in, steps and totals are not.
    Plan& plan() { return plan_; }
    ActivationSpecs& asks() { return *asks_; }

private:
    void round_cache_length();
    void pad_vocabulary();
    void split_batch();
    partition::SpecEntry axes_of(partition::Semantic semantic, const char* tensor);
    bool tokens_divisible(const partition::SpecEntry& heads);
    bool choose_provider();
    void remark_on_provider(const partition::SpecEntry& heads, backend::ProviderConditions conditions);
    void build_graph();
    void split_layers();
    void place();
    void note_unused_options();
    void check();

    Plan plan_;
    diag::Diagnostics& diagnostics_;
    std::size_t errors_before_;
    Placer placer_;
    partition::SpecEntry token_parallel_;
    std::optional<partition::RuleTable> rules_;
    std::unique_ptr<ActivationSpecs> asks_;
};

backend::ProviderCompat provider_compat(const Job& job);

}  // namespace shardplan::plan
