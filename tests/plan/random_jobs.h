// Random jobs as JSON, so that a failure can be given to the command line as it is printed: tiny models of several
// families on any mesh, with any PartitionAxis. Most are good; make_plan decides.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/random_fields.h"

namespace shardplan::test {

class RandomJobs {
public:
    RandomJobs(std::uint64_t seed, std::int64_t devices)
        : random_(seed * 1000003 + 17), int8_(seed * 1000003 + 18), devices_(devices) {}

    /// The next job.
    std::string next() {
        draw_mesh();
        f32_only_ = false;
        const std::string model = draw_model();
        const std::string workload = draw_workload();
        const bool current = one_in(3);
        RandomFields drawn(random_, axes_);
        const std::string fields = current ? drawn.current() : drawn.seed();
        const std::string rules = one_in(4)   ? draw_rules()
                                  : one_in(6) ? pick({R"("seed-0.0.80")", R"("easydel-0.2")"})
                                              : R"("derived")";
        return fmt::format(
            R"({{"model": {}, "mesh": {{"axes": {{{}}}}}, "partition_axis": {{{}}}, "partition_rules": {}, )"
            R"("backend": {}, "workload": {}, "options": {{"indivisible": "{}", "kv_heads": "{}", "compat": "{}"{}}}}})",
            model, mesh_, fields, rules, draw_backend(), workload, pick({"strict", "drop", "drop", "pad"}),
            pick({"replicate", "split"}), current ? "current" : "seed", draw_attention_options());
    }

private:
    using Names = std::vector<std::string>;

    bool one_in(std::int64_t n) { return random_.one_in(n); }

    /// Then sizes have a factor of three as well.
    bool by_three() const { return devices_ % 3 == 0; }

    std::string pick(const Names& names) { return random_.pick(names); }
    std::int64_t pick_size(const std::vector<std::int64_t>& sizes) { return random_.pick(sizes); }

    /// 1 to 4 axes in any order under odd names, whose sizes multiply to the number of devices.
    void draw_mesh() {
        Names names = {"tp", "dp", "sp", "fsdp", "model", "x", "z9", "stage/1"};
        axes_.clear();
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(1 + random_.below(4)), 1);
        std::int64_t rest = devices_;
        for (std::int64_t prime = 2; rest > 1;) {
            if (rest % prime != 0) {
                ++prime;
                continue;
            }
            sizes[static_cast<std::size_t>(random_.below(std::ssize(sizes)))] *= prime;
            rest /= prime;
        }
        mesh_.clear();
        for (const std::int64_t size : sizes) {
            const std::string name =
                one_in(3) ? pick(names) : names[static_cast<std::size_t>(random_.below(3)) % names.size()];
            std::erase(names, name);
            axes_.push_back(name);
            mesh_ += fmt::format(R"({}"{}": {})", mesh_.empty() ? "" : ", ", name, size);
        }
        stages_ = 1;
        if (axes_.size() > 1 && one_in(5)) {
            add_pipeline(sizes);
        }
    }

    /// The first axis becomes one of stages, which no field names.
    void add_pipeline(const std::vector<std::int64_t>& sizes) {
        stages_ = sizes.front();
        mesh_ = R"("pp")" + mesh_.substr(mesh_.find(':'));
        axes_.erase(axes_.begin());
    }

    std::string draw_backend() {
        const std::string provider = pick({"auto", "auto", "local", "fused", "inference"});
        const std::string grouped =
            pick({"", R"(, "moe_use_grouped_gemm": true)", R"(, "moe_use_grouped_gemm": false)"});
        const bool int8 = provider == "inference" && int8_.one_in(2);
        return fmt::format(R"({{"provider": "{}", "moe_token_dispatcher_type": "{}"{}{}}})", provider,
                           pick({"auto", "allgather", "alltoall", "alltoall"}), grouped,
                           int8 ? R"(, "weight_dtype": "int8")" : "");
    }

    /// Mixtures of experts, of every way to store, weigh and bias them. SparseMixer in f32 only: rounding may also
    /// change which experts are near to the best one.
    std::string draw_expert_model(const std::string& common, const std::string& kv, std::int64_t head_dim) {
        const std::string stacked = fmt::format(R"("intermediate_size": {}, "num_local_experts": {})",
                                                pick_size({8, 16, 24}), pick_size({4, 8, 8, 12}));
        const std::string experts = fmt::format(R"({}, "num_experts_per_tok": {})", stacked, pick_size({1, 2, 3}));
        const std::string head = fmt::format(R"("head_dim": {}, "rope_scaling": null)", head_dim);
        switch (random_.below(8)) {
            case 0:
                return fmt::format(R"({{"model_type": "gpt_oss", {}, {}, {}, {}, "sliding_window": 4, )"
                                   R"("swiglu_limit": 0.5}})",
                                   common, experts, kv, head);
            case 1:
                return fmt::format(R"({{"model_type": "llama4_text", {}, {}, {}, {}, "intermediate_size_mlp": 48, )"
                                   R"("attention_chunk_size": 4, "no_rope_layer_interval": 2, "floor_scale": 2, )"
                                   R"("interleave_moe_layer_step": {}}})",
                                   common, experts, kv, head, pick({"1", "2"}));
            case 2: return fmt::format(R"({{"model_type": "granitemoe", {}, {}, {}}})", common, experts, kv);
            case 3:
                return fmt::format(R"({{"model_type": "minimax_m2", {}, {}, {}, "head_dim": {}, "rotary_dim": 4}})",
                                   common, experts, kv, head_dim);
            case 4:
                f32_only_ = true;
                return fmt::format(R"({{"model_type": "phimoe", {}, {}, {}, "num_experts_per_tok": 2, )"
                                   R"("attention_bias": {}, "lm_head_bias": {}}})",
                                   common, stacked, kv, pick({"true", "false"}), pick({"true", "false"}));
            case 5:
                return fmt::format(R"({{"model_type": "qwen2_moe", {}, {}, "intermediate_size": 48, "num_experts": 8, )"
                                   R"("moe_intermediate_size": 16, "shared_expert_intermediate_size": 24, )"
                                   R"("num_experts_per_tok": {}, "decoder_sparse_step": {}}})",
                                   common, kv, pick({"2", "3"}), pick({"1", "2"}));
            case 6:
                return fmt::format(R"({{"model_type": "glm4_moe", {}, {}, "intermediate_size": 48, "head_dim": {}, )"
                                   R"("moe_intermediate_size": 16, "n_routed_experts": 8, "num_experts_per_tok": 3, )"
                                   R"("n_group": 4, "topk_group": 2, "first_k_dense_replace": {}}})",
                                   common, kv, head_dim, pick({"0", "1"}));
            default: return fmt::format(R"({{"model_type": "mixtral", {}, {}, {}}})", common, experts, kv);
        }
    }

    std::string draw_model() {
        const std::int64_t heads = by_three() ? 12 : 8;
        const std::int64_t head_dim = pick_size({4, 8});
        const std::int64_t kv_heads = by_three() ? pick_size({12, 6, 3, 1}) : pick_size({8, 4, 2, 1});
        const std::int64_t hidden = heads * head_dim;
        const std::int64_t layers = std::max<std::int64_t>(stages_, one_in(3) ? 2 : 1);
        const std::int64_t vocab = one_in(6) ? 61 : pick_size({64, 96, 128});
        const std::int64_t wide = pick_size({48, 64, 96});
        const std::string common =
            fmt::format(R"("hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "vocab_size": {}, )"
                        R"("max_position_embeddings": 64, "torch_dtype": "float32")",
                        hidden, layers, heads, vocab);
        const std::string mlp = fmt::format(R"("intermediate_size": {})", wide);
        const std::string kv = fmt::format(R"("num_key_value_heads": {})", kv_heads);
        f32_only_ = false;
        if (one_in(3)) {
            return draw_expert_model(common, kv, head_dim);
        }
        switch (random_.below(10)) {
            case 0:
                return fmt::format(R"({{"model_type": "gpt2", "n_embd": {}, "n_layer": {}, "n_head": {}, )"
                                   R"("vocab_size": {}, "n_positions": 64, "torch_dtype": "float32"}})",
                                   hidden, layers, heads, vocab);
            case 1:
                return fmt::format(R"({{"model_type": "gpt_neox", {}, {}, "rotary_pct": 0.5, )"
                                   R"("use_parallel_residual": {}, "tie_word_embeddings": false}})",
                                   common, mlp, pick({"true", "true", "false"}));
            case 2:
                return fmt::format(R"({{"model_type": "gemma2", {}, {}, {}, "head_dim": {}, "sliding_window": 4, )"
                                   R"("query_pre_attn_scalar": {}, "attn_logit_softcapping": 50.0, )"
                                   R"("final_logit_softcapping": 30.0}})",
                                   common, mlp, kv, head_dim, head_dim);
            case 3:
                return fmt::format(R"({{"model_type": "falcon", {}, "multi_query": true, "parallel_attn": true, )"
                                   R"("new_decoder_architecture": false, "bias": {}, "alibi": false}})",
                                   common, pick({"true", "false"}));
            case 4:
                return fmt::format(R"({{"model_type": "qwen3", {}, {}, {}, "head_dim": {}}})", common, mlp, kv,
                                   head_dim);
            case 5: return fmt::format(R"({{"model_type": "olmo2", {}, {}, {}}})", common, mlp, kv);
            case 6: return fmt::format(R"({{"model_type": "phi", {}, {}, "partial_rotary_factor": 0.5}})", common, mlp);
            case 7: return draw_deepseek(common, mlp);
            default:
                return fmt::format(R"({{"model_type": "llama", {}, {}, {}, "tie_word_embeddings": {}}})", common, mlp,
                                   kv, pick({"true", "false"}));
        }
    }

    /// Latent attention with both kinds of routers; all layers with experts, or none.
    std::string draw_deepseek(const std::string& common, const std::string& mlp) {
        const bool dense = one_in(2);
        const std::string latent = fmt::format(
            R"("q_lora_rank": {}, "kv_lora_rank": {}, "qk_nope_head_dim": {}, "qk_rope_head_dim": 4, "v_head_dim": {})",
            pick({"null", "24", "16"}), pick_size({16, 12}), pick_size({8, 4}), pick_size({8, 6}));
        const std::string experts =
            dense ? R"("n_routed_experts": null)"
                  : fmt::format(R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4, "topk_group": 2, )"
                                R"("first_k_dense_replace": 0, "moe_intermediate_size": 16, "n_shared_experts": {})",
                                pick({"1", "2", "null"}));
        return fmt::format(R"({{"model_type": "{}", {}, {}, {}, {}, "attention_bias": {}}})",
                           pick({"deepseek_v2", "deepseek_v3"}), common, mlp, latent, experts,
                           pick({"false", "false", "true"}));
    }

    std::string draw_workload() {
        const std::string mode = pick({"prefill", "prefill", "prefill", "decode", "decode", "insert"});
        const bool decode = mode != "prefill";
        const std::int64_t tokens = decode       ? 2 + random_.below(3)
                                    : by_three() ? pick_size({12, 24, 48, 16})
                                                 : pick_size({8, 8, 16, 16, 12, 48});
        const std::int64_t cache = one_in(3) ? (mode == "decode" ? 16 : 24) : 0;
        std::string steps;
        if (mode == "insert") {
            steps =
                fmt::format(R"("insert_length": {}, )", by_three() ? pick_size({6, 12, 3}) : pick_size({8, 4, 6, 1}));
        } else if (!decode && one_in(4)) {
            steps = fmt::format(R"("chunk_length": {}, )", pick_size({4, 8, 6}));
        } else if (!decode && cache == 0 && stages_ > 1) {
            steps = fmt::format(R"("micro_batches": {}, )", pick_size({1, 2, 4}));
        }
        return fmt::format(
            R"({{"mode": "{}", "batch_size": {}, "sequence_length": {}, "cache_length": {}, {}"dtype": "{}"}})", mode,
            by_three() ? pick_size({6, 6, 12, 4, 1}) : pick_size({8, 8, 8, 4, 6, 1}), tokens, cache, steps,
            f32_only_ ? "f32" : pick({"f32", "f32", "f32", "bf16"}));
    }

    std::string draw_attention_options() {
        if (one_in(3)) {
            return "";
        }
        return fmt::format(R"(, "cp_comm_type": "{}", "context_parallel_load_balance": {})",
                           pick({"auto", "auto", "p2p", "p2p", "a2a", "all_gather"}), pick({"true", "true", "false"}));
    }

    std::string draw_rules() {
        const auto rule = [&](const char* pattern, int dims) {
            Names taken;
            std::string entries;
            for (int d = 0; d < dims; ++d) {
                entries += fmt::format("{}{}", d == 0 ? "" : ", ", entry_json(draw_entry(random_, axes_, taken)));
            }
            return fmt::format(R"(["{}", [{}]])", pattern, entries);
        };
        return fmt::format("[{}, {}, {}, {}, {}]", rule("bias$|norm|ln_|_ln", 1),
                           rule("embed|wte|word_embeddings|lm_head", 2),
                           rule("q_proj|k_proj|v_proj|query_key_value|c_attn", 2), rule("mlp", 2), rule(".*", 2));
    }

    Draw random_;
    Draw int8_;  ///< draws of its own: half of the jobs with the provider inference
    std::int64_t devices_;
    Names axes_;
    std::string mesh_;
    std::int64_t stages_ = 1;
    bool f32_only_ = false;  ///< the model drawn last
};

}  // namespace shardplan::test
