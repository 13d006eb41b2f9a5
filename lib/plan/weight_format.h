// Which weights a job with int8_weights keeps as 8 bit integers, and what they occupy. They are the matrices of column
// and row parallel linears (attention, MLP, shared expert, an output head of its own) that linears multiply with just
// as they are stored. All else keeps the workload's dtype: norms, embeddings and a head tied to them, router, experts,
// projections into latents, matrices absorbed by heads, and what is gathered or moved before use (stored over fsdp).
// One scale (f32) for each output channel of the part a device holds. Knows nothing of values and kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// Indices into Plan::stored of the weights that one step multiplies with, in the order of its outputs.
using WeightGroup = std::vector<int>;

/// The weights that only linears use, as they are stored, each in one group only; with whether they are [in, out].
/// @pre lowered
std::map<WeightGroup, bool> prepared_groups(const Plan& plan);

/// Before lowering: all weights of the kinds that can be int8. What they occupy then is a lower bound.
void choose_weight_formats(Plan& plan);

/// After lowering: only those whose group is prepared and int8 as a whole; values and memory follow.
void settle_weight_formats(Plan& plan);

/// SP5006 where the model has experts: their weights are the most of such a model and stay.
void check_kept_experts(const Plan& plan, diag::Diagnostics& diagnostics);

/// SP5006 where no weight at all is int8. @pre settled
void check_any_int8(const Plan& plan, diag::Diagnostics& diagnostics);

/// For people: what int8 means here, and the weights that stay because of how they are used. @pre settled
std::string weight_format_note(const Plan& plan);

}  // namespace shardplan::plan
