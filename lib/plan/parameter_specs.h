// Where parameters and caches lie: derived from the role of each weight, from a preset table, or from the job's rules.
#pragma once

#include <vector>

#include "plan/activation_specs.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// The dimension of a parameter that its role cuts over the parallel axes; -1 = none.
int parallel_dimension(const model::Parameter& parameter);

/// The same, and that of the experts: those that stay cut while the weight is used.
std::vector<int> parallel_dimensions(const model::Parameter& parameter);

/// The table of a job whose rule source is not `derived`. SP4005 when there is none or a pattern is wrong.
std::optional<partition::RuleTable> rule_table(const Job& job, diag::Diagnostics& diagnostics);

/// All parameters and caches of the graph. Errors go to `diagnostics`; the result is complete nevertheless.
///
/// derived: column-parallel [out, in]: P(parallel, storage); row-parallel [out, in]: P(storage, parallel); token
/// embedding [v, e]: P(vocab, storage); column bias P(parallel); experts' gate and up [X, f, e]: P(expert, parallel,
/// storage), their down [X, e, f]: P(expert, storage, parallel); everything else replicated. `parallel` is what
/// head_axis, kv_head_axis, mlp_intermediate_axis or vocab_axis has in training, `storage` is weight_storage_axis
/// without the axes that `parallel` uses (Megatron's split over tp, ZeRO-3's storage over the rest; EasyDeL's
/// ColumnWise / RowWise).
///
/// `rules`: a table of rules instead; null = derived. Experts that the checkpoint has one by one are matched under the
/// name of the first one; the rule is for the stack of them (but for the preset of 0.0.80, which has no stack).
std::vector<StoredTensor> place_stored_tensors(const Job& job, const model::Graph& graph, const RefinedMesh& mesh,
                                               const partition::RuleTable* rules, Placer& placer,
                                               ActivationSpecs& activations, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
