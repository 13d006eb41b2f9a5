// What the families differ in, one row each: defaults of the configuration classes and facts of the layouts.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include "model/model_cases.h"

namespace shardplan::model {
namespace {

struct Row {
    const char* changes;
    std::function<bool(const ModelSpec&)> holds;
};
using M = const ModelSpec&;
const Row family_rows[] = {
    {"{}", [](M m) { return m.norm.eps == 1e-6 && !m.tied_embeddings && m.attention.head_dim == 12; }},
    {R"({"model_type": "mistral"})", [](M m) { return m.layers[3].sliding_window == 4096; }},
    {R"({"model_type": "mistral", "sliding_window": "=null"})", [](M m) { return m.layers[3].sliding_window == 0; }},
    {R"({"model_type": "mistral", "num_key_value_heads": "=null"})", [](M m) { return m.attention.kv_heads == 4; }},
    {R"({"model_type": "qwen2"})",
     [](M m) { return m.attention.q_bias && !m.attention.out_bias && m.layers[3].sliding_window == 0; }},
    {R"({"model_type": "qwen3"})", [](M m) { return m.attention.head_dim == 128 && !m.attention.q_bias; }},
    {R"({"model_type": "gemma", "hidden_act": "gelu"})",
     [](M m) {
         return m.mlp.activation == "gelu_pytorch_tanh" && m.norm.weight_offset == 1.0 && m.tied_embeddings &&
                m.attention.head_dim == 256 && m.embedding_scale == std::sqrt(48.0);
     }},
    {R"({"model_type": "gemma2", "query_pre_attn_scalar": 24})",
     [](M m) {
         return m.attention.scale == 1.0 / std::sqrt(24.0) && m.attention.logit_softcap == 50.0 &&
                m.logit_softcap == 30.0 && m.layers[0].sliding_window == 4096 && m.layers[1].sliding_window == 0;
     }},
    {R"({"model_type": "gemma2", "attn_logit_softcapping": "=null"})",
     [](M m) { return m.attention.logit_softcap == 0.0; }},
    {R"({"model_type": "gemma3_text", "num_hidden_layers": 6})",
     [](M m) {
         return m.layers[4].sliding_window == 4096 && m.layers[4].local_rope && m.layers[5].sliding_window == 0 &&
                !m.layers[5].local_rope && m.attention.qk_norm == QkNorm::per_head && m.logit_softcap == 0.0 &&
                m.attention.local_rope.inverse_frequencies[1] > m.attention.rope.inverse_frequencies[1];
     }},
    {R"({"model_type": "grok-1", "num_experts": 8})",
     [](M m) {
         return m.names.post_mlp_norm.ends_with("post_moe_norm.scale") && m.attention.logit_softcap == 30.0 &&
                m.mlp.activation == "gelu_pytorch_tanh" && !m.moe.routing.normalise && m.moe.experts == 8 &&
                m.embedding_scale == std::sqrt(48.0) && m.tied_embeddings;
     }},
    {R"({"model_type": "minicpm", "num_experts": 8, "num_experts_per_tok": 2})",
     [](M m) { return m.layers[3].moe && m.moe.routing.normalise && m.names.expert_up.ends_with("{expert}.w3"); }},
    {R"({"model_type": "minicpm"})", [](M m) { return !m.layers[3].moe && m.moe.experts == 0; }},
    {R"({"model_type": "step3p7", "num_experts": 16, "num_nextn_predict_layers": 3, "share_expert_dim": 24})",
     [](M m) {
         return !m.layers[2].moe && m.layers[3].moe && m.norm.weight_offset == 1.0 && m.moe.shared_intermediate == 24 &&
                m.moe.routing.score == RouterScore::sigmoid && m.attention.qk_norm == QkNorm::per_head &&
                m.names.expert_gate == "model.layers.{}.moe.gate_proj" && m.layers[0].sliding_window == 0 &&
                m.layers[1].sliding_window == 512;
     }},
    {R"({"model_type": "phi"})",
     [](M m) {
         return m.shared_norm && m.lm_head_bias && m.attention.rope.rotary_dim == 6 && m.mlp.down_bias &&
                m.mlp.activation == "gelu_new";
     }},
    {R"({"model_type": "phi3"})", [](M m) { return m.mlp.fused_gate_up && m.norm.eps == 1e-5; }},
    {R"({"model_type": "gpt2", "intermediate_size": null})",
     [](M m) { return m.conv1d && m.mlp.intermediate == 192 && m.position_rows == 64 && m.tied_embeddings; }},
    {R"({"model_type": "gpt_neox", "rotary_pct": 0.5})",
     [](M m) { return m.layout == BlockLayout::parallel && !m.shared_norm && m.attention.kv_heads == 4; }},
    {R"({"model_type": "gpt_neox", "use_parallel_residual": false, "rotary_pct": 0.5})",
     [](M m) { return m.layout == BlockLayout::sequential && m.attention.rope.rotary_dim == 6; }},
    {R"({"model_type": "gptj", "rotary_dim": 8})",
     [](M m) { return m.attention.rope.interleaved && m.attention.rope.rotary_dim == 8 && m.lm_head_bias; }},
    {R"({"model_type": "falcon"})",
     [](M m) { return m.attention.kv_heads == 1 && m.shared_norm && m.attention.rope.rotary_dim == 12; }},
    {R"({"model_type": "falcon", "new_decoder_architecture": true})",
     [](M m) {
         return m.attention.kv_heads == 2 && !m.shared_norm && m.names.pre_mlp_norm.ends_with("ln_mlp") &&
                m.attention.storage == QkvStorage::grouped;
     }},
    {R"({"model_type": "falcon", "new_decoder_architecture": true, "num_ln_in_parallel_attn": 1})",
     [](M m) { return m.shared_norm && m.names.pre_attention_norm.ends_with("input_layernorm"); }},
    {R"({"model_type": "falcon", "alibi": true, "multi_query": false, "parallel_attn": false, "bias": true})",
     [](M m) {
         return m.attention.alibi && m.attention.alibi_bf16 && m.attention.rope.rotary_dim == 0 &&
                m.layout == BlockLayout::sequential && m.attention.kv_heads == 4 && m.attention.q_bias;
     }},
    {R"({"model_type": "RefinedWeb", "num_key_value_heads": null, "n_head_kv": 2})",
     [](M m) { return m.attention.kv_heads == 2 && m.family == "falcon"; }},
    {R"({"model_type": "opt"})",
     [](M m) { return m.position_rows == 66 && m.position_offset == 2 && m.final_norm && m.mlp.activation == "relu"; }},
    {R"({"model_type": "opt", "do_layer_norm_before": false})",
     [](M m) { return !m.final_norm && m.norm_after_residual; }},
    {R"({"model_type": "starcoder2"})", [](M m) { return m.tied_embeddings && !m.mlp.gated && m.norm.has_bias; }},
    {R"({"model_type": "gpt_bigcode"})", [](M m) { return m.attention.kv_heads == 1 && !m.conv1d; }},
    {R"({"model_type": "bloom"})",
     [](M m) { return m.attention.alibi && !m.attention.alibi_bf16 && !m.names.embedding_norm.empty(); }},
    {R"({"model_type": "mpt", "intermediate_size": null, "expansion_ratio": 2,
         "attn_config": {"clip_qkv": 6, "softmax_scale": 0.5}})",
     [](M m) {
         return m.mlp.intermediate == 96 && m.attention.qkv_clip == 6.0 && m.attention.scale == 0.5 &&
                !m.norm.has_bias && m.attention.alibi_slopes.size() == 4;
     }},
    {R"({"model_type": "olmo"})", [](M m) { return !m.norm.has_weight && m.norm.eps == 1e-5; }},
    {R"({"model_type": "olmo2"})",
     [](M m) { return m.attention.qk_norm == QkNorm::full && m.names.pre_attention_norm.empty(); }},
    {R"({"model_type": "smollm3", "no_rope_layers": [1, 0, 1, 1]})",
     [](M m) { return m.layers[0].rope && !m.layers[1].rope && m.layers[3].rope; }},
    {R"({"model_type": "stablelm", "partial_rotary_factor": 0.5, "use_parallel_residual": true})",
     [](M m) { return m.shared_norm && m.layout == BlockLayout::parallel && !m.attention.q_bias; }},
    {R"({"model_type": "granite", "logits_scaling": 0.5, "attention_multiplier": 0.2})",
     [](M m) { return m.logit_scale == 2.0 && m.attention.scale == 0.2; }},
    {R"({"model_type": "cohere"})",
     [](M m) { return m.logit_scale == 0.0625 && m.shared_norm && m.attention.rope.interleaved; }},
    {R"({"model_type": "cohere2"})", [](M m) { return m.layers[0].rope && !m.layers[3].rope; }},
    {R"({"model_type": "glm4", "head_dim": 16})",
     [](M m) { return m.attention.rope.rotary_dim == 8 && !m.names.post_mlp_norm.empty(); }},
    {R"({"model_type": "qwen"})", [](M m) { return m.mlp.intermediate == 56 && m.attention.v_bias; }},
    {R"({"model_type": "baichuan", "num_key_value_heads": null})",
     [](M m) { return !m.attention.alibi && m.attention.rope.rotary_dim == 12; }},
    {R"({"model_type": "minicpm", "scale_depth": 1.4, "scale_emb": 12, "dim_model_base": 24})",
     [](M m) { return m.residual_scale == 0.7 && m.embedding_scale == 12.0 && m.logit_scale == 0.5; }},
    {R"({"model_type": "gpt_neo", "attention_types": [[["global", "local"], 1], [["local"], 2]]})",
     [](M m) { return m.layers[0].sliding_window == 0 && m.layers[2].sliding_window == 256; }},
};

TEST_CASE("defaults and layouts of the families") {
    for (const Row& row : family_rows) {
        CAPTURE(std::string(row.changes));
        CHECK(row.holds(small_model(row.changes)));
    }
}

TEST_CASE("layer_types decides where it is present") {
    const ModelSpec model = small_model(R"({"model_type": "gemma2", "sliding_window": 8, "layer_types":
        ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]})");
    CHECK(model.layers[0].sliding_window == 0);
    CHECK(model.layers[2].sliding_window == 8);
    const auto errors = read_errors(small_config(R"({"model_type": "gemma2", "layer_types":
        ["full_attention", "linear_attention", "full_attention", "full_attention"]})"));
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].code == "SP2002");
    CHECK(errors[0].pointer == "/layer_types/1");
}

}  // namespace
}  // namespace shardplan::model
