#include <stdexcept>

#include "backend/provider.h"

namespace shardplan::backend {
namespace {

/// The router contains its linear.
Module router_module(const BackendSpecProvider& provider) {
    return provider.kind() == ProviderKind::inference ? "InferenceTopKRouter" : "TopKRouter";
}

Module linear_module(const BackendSpecProvider& provider, model::Slot slot, bool fused_norm) {
    switch (slot) {
        case model::Slot::qkv:
        case model::Slot::q_up:
        case model::Slot::kv_up:
        case model::Slot::fc1:
            return fused_norm ? provider.column_parallel_layer_norm_linear().value()
                              : provider.column_parallel_linear();
        case model::Slot::attention_out:
        case model::Slot::fc2: return provider.row_parallel_linear();
        case model::Slot::lm_head:
            // gpt_model.py builds the output layer itself, whatever the provider.
            return "ColumnParallelLinear";
        case model::Slot::router: return router_module(provider);
        case model::Slot::q_down:
        case model::Slot::kv_down:
            // Megatron's specs of latent attention take the provider's plain linear, local's its column-parallel one.
            return provider.kind() == ProviderKind::local ? provider.column_parallel_linear() : "TELinear";
        default: return "ReplicatedLinear";
    }
}

Module norm_module(const BackendSpecProvider& provider, const model::Op& op, bool fused_norm) {
    const bool latent = op.slot == model::Slot::latent_norm;
    const bool for_qk = latent || op.slot == model::Slot::q_norm || op.slot == model::Slot::k_norm;
    const bool fusible = latent || op.slot == model::Slot::input_norm || op.slot == model::Slot::pre_mlp_norm;
    if (fused_norm && fusible) {
        return "IdentityOp";
    }
    return provider.layer_norm(op.attributes.norm.kind == model::NormKind::rms, for_qk);
}

}  // namespace

Module module_of(const BackendSpecProvider& provider, const model::Op& op, bool fused_norm) {
    switch (op.kind) {
        case model::OpKind::embedding: return "VocabParallelEmbedding";
        case model::OpKind::position_embedding: return "PositionEmbedding";
        case model::OpKind::norm: return norm_module(provider, op, fused_norm);
        case model::OpKind::linear: return linear_module(provider, op.slot, fused_norm);
        case model::OpKind::bias_add: return "BiasAdd";
        case model::OpKind::split_heads: return "SplitHeads";
        case model::OpKind::merge_heads: return "MergeHeads";
        case model::OpKind::rope: return "RotaryEmbedding";
        case model::OpKind::attention: return provider.core_attention();
        case model::OpKind::cache_write: return "KVCacheWrite";
        case model::OpKind::add: return "ElementwiseAdd";
        case model::OpKind::glu: return provider.activation_func().value_or("GatedActivation");
        case model::OpKind::activation: return provider.activation_func().value_or("Activation");
        case model::OpKind::scale: return "ElementwiseScale";
        case model::OpKind::softcap: return "ElementwiseSoftcap";
        case model::OpKind::clip: return "ElementwiseClip";
        case model::OpKind::route: return router_module(provider);
        case model::OpKind::experts: return expert_modules(provider).value().experts;
        case model::OpKind::gate_rows: return "SharedExpertGate";
        case model::OpKind::temperature: return "QueryTemperature";
        case model::OpKind::take: return "TakeComponents";
        case model::OpKind::join: return "JoinComponents";
        case model::OpKind::head_linear: return "AbsorbedHeadLinear";
    }
    throw std::invalid_argument("not a kind of op");
}

}  // namespace shardplan::backend
