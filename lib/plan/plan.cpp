#include "plan/plan.h"

#include <algorithm>

namespace shardplan::plan {

std::string_view to_string(ComputeKind kind) {
    switch (kind) {
        case ComputeKind::op: return "op";
        case ComputeKind::norm_statistics: return "norm_statistics";
        case ComputeKind::norm_apply: return "norm_apply";
        case ComputeKind::attention_partial: return "attention_partial";
        case ComputeKind::attention_accumulate: return "attention_accumulate";
        case ComputeKind::softmax_rescale: return "softmax_rescale";
        case ComputeKind::softmax_merge: return "softmax_merge";
        case ComputeKind::fused_linear: return "fused_linear";
        case ComputeKind::dispatch_tokens: return "dispatch_tokens";
        case ComputeKind::dispatched_experts: return "dispatched_experts";
        case ComputeKind::combine_tokens: return "combine_tokens";
    }
    return "op";
}

std::string_view to_string(CpCommType type) {
    switch (type) {
        case CpCommType::automatic: return "auto";
        case CpCommType::all_gather: return "all_gather";
        case CpCommType::p2p: return "p2p";
        case CpCommType::a2a: return "a2a";
    }
    return "auto";
}

partition::Phase phase_of(const Job& job) {
    using partition::Phase;
    switch (job.workload.mode) {
        case model::Mode::decode: return Phase::decode;
        case model::Mode::insert: {
            const bool one_token = job.workload.query_length() == 1;
            return job.options.compat == partition::Compat::current ? Phase::insert
                   : one_token                                      ? Phase::decode
                                                                    : Phase::prefill;
        }
        case model::Mode::prefill: break;
    }
    return Phase::prefill;
}

std::vector<ValueId> defined_values(const Step& step) {
    if (step.collective) {
        const bool in_place = step.collective->input == step.collective->output;
        return in_place ? std::vector<ValueId>{} : std::vector<ValueId>{step.collective->output};
    }
    std::vector<ValueId> result;
    const std::vector<ValueId>& inputs = step.compute->inputs;
    for (const ValueId output : step.compute->outputs) {
        if (std::find(inputs.begin(), inputs.end(), output) == inputs.end()) {
            result.push_back(output);
        }
    }
    return result;
}

}  // namespace shardplan::plan
