// Tiny models, jobs and plans for the tests of exec.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/model_file.h"
#include "exec/expert_models.h"
#include "plan/plan.h"

namespace shardplan::test {

inline std::string text_of(const diag::Diagnostics& diagnostics) {
    std::string text;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        text += fmt::format("{} {} at '{}'\n", d.code, d.message, d.pointer);
    }
    return text;
}

inline model::ModelSpec model_of(const std::string& json) {
    diag::Diagnostics diagnostics;
    const auto document = config::parse_document(json, "test", diagnostics);
    auto model = document ? config::read_model_config(*document, diagnostics) : std::nullopt;
    if (!model) {
        throw std::runtime_error(text_of(diagnostics));
    }
    return *model;
}

/// Two layers, grouped queries; every size divides by 8 where a mesh could ask for it.
inline model::ModelSpec tiny_llama() {
    return model_of(R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "intermediate_size": 48, "vocab_size": 64, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float32"})");
}

/// Learned positions, LayerNorm, biases, [in, out] weights, a fused QKV tensor and tied embeddings.
inline model::ModelSpec tiny_gpt2() {
    return model_of(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 8, "vocab_size": 64,
        "n_positions": 64, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "torch_dtype": "float32"})");
}

/// Post-norms, soft caps, alternating windows, scaled and tied embeddings.
inline model::ModelSpec tiny_gemma2() {
    return model_of(R"({"model_type": "gemma2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 48, "vocab_size": 64, "sliding_window": 4,
        "max_position_embeddings": 64, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 8, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh",
        "torch_dtype": "float32"})");
}

/// Parallel layers, one shared norm, a fused QKV tensor per kv group.
inline model::ModelSpec tiny_falcon() {
    return model_of(R"({"model_type": "falcon", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_kv_heads": 4, "vocab_size": 64, "new_decoder_architecture": true, "bias": false, "alibi": false,
        "parallel_attn": true, "torch_dtype": "float32"})");
}

/// ALiBi, LayerNorm after the embedding, biases.
inline model::ModelSpec tiny_bloom() {
    return model_of(R"({"model_type": "bloom", "hidden_size": 32, "n_layer": 2, "n_head": 8, "vocab_size": 64,
        "torch_dtype": "float32"})");
}

/// Norms over all heads together and after the sublayers.
inline model::ModelSpec tiny_olmo2() {
    return model_of(R"({"model_type": "olmo2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "intermediate_size": 48, "vocab_size": 64, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6, "torch_dtype": "float32"})");
}

/// Experts in every layer.
inline model::ModelSpec tiny_mixtral() {
    return model_of(R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "intermediate_size": 16, "vocab_size": 64, "num_local_experts": 8,
        "num_experts_per_tok": 2, "max_position_embeddings": 64, "torch_dtype": "float32"})");
}

/// Every token uses all experts: rounding to bf16 cannot choose others.
inline model::ModelSpec tiny_mixtral_of_all() {
    model::ModelSpec model = tiny_mixtral();
    model.moe.routing.top_k = model.moe.experts;
    return model;
}

/// A dense layer, then one with experts and a shared expert behind a gate.
inline model::ModelSpec tiny_qwen2_moe() {
    return model_of(R"({"model_type": "qwen2_moe", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "intermediate_size": 48, "moe_intermediate_size": 16, "num_experts": 8,
        "shared_expert_intermediate_size": 24, "num_experts_per_tok": 3, "mlp_only_layers": [0], "vocab_size": 64,
        "max_position_embeddings": 64, "torch_dtype": "float32"})");
}

/// Groups of experts, sigmoid scores with a correction, a shared expert.
inline model::ModelSpec tiny_glm4_moe() {
    return model_of(R"({"model_type": "glm4_moe", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 48, "moe_intermediate_size": 16,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
        "use_qk_norm": true, "vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "float32"})");
}

/// The experts' weights stacked in the checkpoint, gate and up in one tensor.
inline model::ModelSpec tiny_granitemoe() {
    return model_of(R"({"model_type": "granitemoe", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "intermediate_size": 16, "vocab_size": 64, "num_local_experts": 8,
        "num_experts_per_tok": 2, "max_position_embeddings": 64, "attention_multiplier": 0.5,
        "torch_dtype": "float32"})");
}

/// Sinks, alternating windows, biases everywhere, stacked experts with interleaved columns and a clamped activation.
inline model::ModelSpec tiny_gpt_oss() {
    return model_of(R"({"model_type": "gpt_oss", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 16, "vocab_size": 64, "num_local_experts": 8,
        "num_experts_per_tok": 3, "sliding_window": 4, "swiglu_limit": 0.5, "max_position_embeddings": 64,
        "rope_scaling": null, "torch_dtype": "float32"})");
}

/// LayerNorms without bias, clipped [q | k | v], experts flat in three tensors.
inline model::ModelSpec tiny_dbrx() {
    return model_of(R"({"model_type": "dbrx", "d_model": 32, "n_layers": 2, "n_heads": 8, "max_seq_len": 64,
        "vocab_size": 64, "attn_config": {"clip_qkv": 0.5, "kv_n_heads": 4, "rope_theta": 10000},
        "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 8, "moe_top_k": 3}, "torch_dtype": "float32"})");
}

/// Chunks, layers without positions with tempered queries, norms after the rotation, one expert with a scaled input
/// beside a shared one, a dense layer.
inline model::ModelSpec tiny_llama4() {
    return model_of(R"({"model_type": "llama4_text", "hidden_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 16,
        "intermediate_size_mlp": 48, "interleave_moe_layer_step": 2, "num_local_experts": 8, "num_experts_per_tok": 1,
        "attention_chunk_size": 4, "no_rope_layers": [1, 0, 0, 1], "floor_scale": 2, "use_qk_norm": true,
        "vocab_size": 64, "max_position_embeddings": 64, "rope_scaling": null, "torch_dtype": "float32"})");
}

/// Latent attention with direct queries, a dense layer, then experts with unnormalised weights and two shared ones.
inline model::ModelSpec tiny_deepseek_v2() {
    return model_of(R"({"model_type": "deepseek_v2", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 8, "q_lora_rank": null, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
        "v_head_dim": 6, "intermediate_size": 48, "moe_intermediate_size": 16, "n_routed_experts": 8,
        "n_shared_experts": 2, "num_experts_per_tok": 3, "first_k_dense_replace": 1, "routed_scaling_factor": 1.5,
        "vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "float32"})");
}

/// Latent queries, yarn with a correction of the scores, experts in groups with a correction bias.
inline model::ModelSpec tiny_deepseek_v3(const std::string& bias = "false") {
    return model_of(fmt::format(R"({{"model_type": "deepseek_v3", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 8, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
        "v_head_dim": 6, "attention_bias": {}, "intermediate_size": 48, "moe_intermediate_size": 16,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1,
        "vocab_size": 64, "max_position_embeddings": 64, "rope_scaling": {{"type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1, "mscale": 0.8, "mscale_all_dim": 0.6}},
        "torch_dtype": "float32"}})",
                                bias));
}

inline model::ModelSpec tiny_model(const std::string& family) {
    if (family == "gpt_oss") {
        return tiny_gpt_oss();
    }
    if (family == "dbrx") {
        return tiny_dbrx();
    }
    if (family == "llama4") {
        return tiny_llama4();
    }
    if (family == "gpt2") {
        return tiny_gpt2();
    }
    if (family == "gemma2") {
        return tiny_gemma2();
    }
    if (family == "falcon") {
        return tiny_falcon();
    }
    if (family == "bloom") {
        return tiny_bloom();
    }
    if (family == "olmo2") {
        return tiny_olmo2();
    }
    if (family == "mixtral") {
        return tiny_mixtral();
    }
    if (family == "mixtral of all") {
        return tiny_mixtral_of_all();
    }
    if (family == "qwen2_moe") {
        return tiny_qwen2_moe();
    }
    if (family == "glm4_moe") {
        return tiny_glm4_moe();
    }
    if (family == "granitemoe") {
        return tiny_granitemoe();
    }
    if (family == "deepseek_v2") {
        return tiny_deepseek_v2();
    }
    if (family == "deepseek_v3") {
        return tiny_deepseek_v3();
    }
    if (family == "deepseek_v3 with biases") {
        return tiny_deepseek_v3("true");
    }
    for (const auto& [name, config] : expert_configs) {
        if (name == family) {
            return model_of(fmt::format("{}{}", config, expert_sizes));
        }
    }
    if (family != "llama") {
        throw std::invalid_argument(fmt::format("no tiny model '{}'", family));
    }
    return tiny_llama();
}

inline plan::Job job_of(model::ModelSpec model, const model::Workload& workload, const std::string& axes = "dp=1") {
    diag::Diagnostics diagnostics;
    plan::Job job;
    job.name = model.family;
    job.model = std::move(model);
    job.workload = workload;
    const auto parsed = mesh::parse_axes(axes, "/mesh", diagnostics);
    const auto mesh = parsed ? mesh::make_mesh(*parsed, std::nullopt, "/mesh", diagnostics) : std::nullopt;
    if (!mesh) {
        throw std::runtime_error(text_of(diagnostics));
    }
    job.mesh = *mesh;
    return job;
}

inline plan::Plan plan_of(const plan::Job& job) {
    diag::Diagnostics diagnostics;
    auto plan = plan::make_plan(job, diagnostics);
    if (!plan) {
        throw std::runtime_error(text_of(diagnostics));
    }
    return *plan;
}

/// The unsharded model over `tokens` positions.
inline plan::Plan reference_of(const plan::Job& job, std::int64_t tokens) {
    model::Workload workload = job.workload;
    workload.mode = model::Mode::prefill;
    workload.sequence_length = tokens;
    workload.cache_length = 0;
    workload.chunk_length = 0;
    workload.micro_batches = 1;
    plan::Job reference = job_of(job.model, workload);
    reference.model.padded_vocab = 0;
    reference.provider = backend::ProviderChoice::local;
    return plan_of(reference);
}

}  // namespace shardplan::test
