#include "plan/plan.h"

namespace shardplan::plan {

std::string_view to_string(ComputeKind kind) {
    switch (kind) {
        case ComputeKind::op: return "op";
        case ComputeKind::norm_statistics: return "norm_statistics";
        case ComputeKind::norm_apply: return "norm_apply";
        case ComputeKind::attention_partial: return "attention_partial";
        case ComputeKind::softmax_rescale: return "softmax_rescale";
        case ComputeKind::softmax_merge: return "softmax_merge";
        case ComputeKind::fused_linear: return "fused_linear";
        case ComputeKind::dispatch_tokens: return "dispatch_tokens";
        case ComputeKind::dispatched_experts: return "dispatched_experts";
        case ComputeKind::combine_tokens: return "combine_tokens";
    }
    return "op";
}

}  // namespace shardplan::plan
