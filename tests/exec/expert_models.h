// Tiny mixtures of experts of families that differ from those of models.h in router, norms or shared experts.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace shardplan::test {

inline constexpr std::pair<std::string_view, std::string_view> expert_configs[] = {
    // Norms over all heads of q and k together, partial positions, sigmoid scores with a correction.
    {"minimax_m2", R"({"model_type": "minimax_m2", "num_key_value_heads": 4, "head_dim": 8, "rotary_dim": 4,
        "intermediate_size": 16, "num_local_experts": 8, "num_experts_per_tok": 2, )"},
    // LayerNorms and biases, two experts by SparseMixer, a bias of the head.
    {"phimoe", R"({"model_type": "phimoe", "num_key_value_heads": 4, "intermediate_size": 16, "num_local_experts": 8,
        "num_experts_per_tok": 2, "attention_bias": true, "lm_head_bias": true, )"},
    // Norms of each head of q and k, no shared expert.
    {"qwen3_moe", R"({"model_type": "qwen3_moe", "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 48,
        "moe_intermediate_size": 16, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true, )"},
    // Unnormalised weights, norms over all heads together.
    {"olmoe", R"({"model_type": "olmoe", "num_key_value_heads": 4, "intermediate_size": 16, "num_experts": 8,
        "num_experts_per_tok": 3, )"},
    // A shared expert beside the stacked ones.
    {"granitemoeshared", R"({"model_type": "granitemoeshared", "num_key_value_heads": 4, "intermediate_size": 16,
        "shared_intermediate_size": 24, "num_local_experts": 8, "num_experts_per_tok": 2, )"},
    // DeepSeek V3 with direct queries and one group, as Moonlight; all layers but the first have experts.
    {"moonlight", R"({"model_type": "deepseek_v3", "q_lora_rank": null, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 8, "intermediate_size": 48, "moe_intermediate_size": 16,
        "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "routed_scaling_factor": 2.446, )"},
    {"kimi_k2", R"({"model_type": "kimi_k2", "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 8, "intermediate_size": 48, "moe_intermediate_size": 16,
        "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "routed_scaling_factor": 2.827, )"},
};

/// What they have in common.
inline constexpr std::string_view expert_sizes = R"("hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 8, "vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "float32"})";

}  // namespace shardplan::test
