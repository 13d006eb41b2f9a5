// The checks of the front end, one file per group. Each reports through the table of codes (diag/codes.h) and decides
// nothing: what changes the plan is done by the passes themselves.
#pragma once

#include "base/checked.h"
#include "diag/diagnostic.h"
#include "plan/activation_specs.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// `plan` as the front end leaves it: placed, not lowered.
struct CheckContext {
    const Plan& plan;
    ActivationSpecs& asks;
    Placer& placer;
    diag::Diagnostics& diagnostics;
};

// ---- use of the mesh: usage_checks.cpp ----

/// SP3004: an axis that cuts nothing. SP4010: one that stores weights and cuts no activation.
void check_unused_axes(const CheckContext& context);
/// SP4012: key/value heads held several times, and what that costs.
void check_kv_replication(const CheckContext& context);
/// SP4006: parameters that no axis cuts, above the tolerance.
void check_unsharded_parameters(const CheckContext& context);

/// SP4015: a rule of the job that wants the tied head cut otherwise than the embedding.
void check_tied_rules(const CheckContext& context);
/// SP4013: rules of the job that decide the place of no parameter; but for those of SP4015.
void check_unused_rules(const CheckContext& context);

// ---- attention: attention_checks.cpp ----

/// SP4001 ... for the bias that the bias fields describe (semantics 1a.4), only when the job gives one of them.
void check_attention_bias(const CheckContext& context);
/// SP4011: head_dim is cut. SP2006: head_dim that kernels of other systems do not take.
void check_head_dim(const CheckContext& context);
/// SP6004: more positions than the model was trained for.
void check_positions(const CheckContext& context);

// ---- attention over sequence axes: sequence_checks.cpp ----

/// SP4020: a way of attention that is not possible. SP4021: an option of it that changes nothing.
void check_sequence_parallel(const CheckContext& context);
/// The order that context_parallel_load_balance asks for; SP4020 (or SP4004) when the sequence does not divide.
TokenOrder token_order_of(const Plan& plan, ActivationSpecs& asks, diag::Diagnostics& diagnostics);
// ---- experts: expert_checks.cpp ----

/// SP5005: options of experts that change nothing.
void check_expert_options(const CheckContext& context);
/// SP5004: the all-to-all dispatcher is asked for where all devices of the experts' axes hold the same tokens.
void check_dispatcher(const CheckContext& context);

// ---- quantisation: quantization_check.cpp ----

/// SP4009: a cut inside a quantisation group.
void check_quantization(const CheckContext& context);

// ---- memory: memory_check.cpp ----

/// SP6003 when parameters and caches alone exceed the budget.
void check_stored_memory(const CheckContext& context);
/// SP6003 with all parts of a finished plan; false when it was reported.
bool check_memory(const Plan& plan, diag::Diagnostics& diagnostics);

/// SP2005.
void report_overflow(const base::OverflowError& error, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
