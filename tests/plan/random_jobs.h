// Random jobs as JSON, so that a failure can be given to the command line as it is printed: tiny models of several
// families on any mesh, with any PartitionAxis. Most are good; make_plan decides.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "comm/tensors.h"

namespace shardplan::test {

class RandomJobs {
public:
    RandomJobs(std::uint64_t seed, std::int64_t devices) : random_(seed * 1000003 + 17), devices_(devices) {}

    /// The next job.
    std::string next() {
        draw_mesh();
        f32_only_ = false;
        const std::string model = draw_model();
        const std::string workload = draw_workload();
        const std::string fields = draw_fields();
        const std::string rules = one_in(4)   ? draw_rules()
                                  : one_in(6) ? pick({R"("seed-0.0.80")", R"("easydel-0.2")"})
                                              : R"("derived")";
        return fmt::format(
            R"({{"model": {}, "mesh": {{"axes": {{{}}}}}, "partition_axis": {{{}}}, "partition_rules": {}, )"
            R"("backend": {}, "workload": {}, "options": {{"indivisible": "{}", "kv_heads": "{}"{}}}}})",
            model, mesh_, fields, rules, draw_backend(), workload, pick({"strict", "drop", "drop", "pad"}),
            pick({"replicate", "split"}), draw_attention_options());
    }

    bool one_in(std::int64_t n) { return random_.below(n) == 0; }

private:
    using Names = std::vector<std::string>;

    /// Then sizes have a factor of three as well.
    bool by_three() const { return devices_ % 3 == 0; }

    std::string pick(const Names& names) {
        return names[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(names.size())))];
    }
    std::int64_t pick_size(const std::vector<std::int64_t>& sizes) {
        return sizes[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(sizes.size())))];
    }

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
        return fmt::format(R"({{"provider": "{}", "moe_token_dispatcher_type": "{}"{}}})", provider,
                           pick({"auto", "allgather", "alltoall", "alltoall"}), grouped);
    }

    /// Mixtures of experts, of every way to store, weigh and bias them.
    std::string draw_expert_model(const std::string& common, const std::string& kv, std::int64_t head_dim) {
        f32_only_ = true;
        const std::string experts =
            fmt::format(R"("intermediate_size": {}, "num_local_experts": {}, "num_experts_per_tok": {})",
                        pick_size({8, 16, 24}), pick_size({4, 8, 8, 12}), pick_size({1, 2, 3}));
        const std::string head = fmt::format(R"("head_dim": {}, "rope_scaling": null)", head_dim);
        switch (random_.below(4)) {
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

    /// Latent attention with both kinds of routers; all layers with experts, or none. Experts run in f32 only: in bf16
    /// the order of a sum may choose others.
    std::string draw_deepseek(const std::string& common, const std::string& mlp) {
        const bool dense = one_in(2);
        f32_only_ = !dense;
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
        const bool decode = one_in(2);
        const std::int64_t tokens = decode       ? 2 + random_.below(3)
                                    : by_three() ? pick_size({12, 24, 48, 16})
                                                 : pick_size({8, 8, 16, 16, 12, 48});
        const std::int64_t cache = one_in(3) ? (decode ? 16 : 24) : 0;
        std::string steps;
        if (!decode && one_in(4)) {
            steps = fmt::format(R"("chunk_length": {}, )", pick_size({4, 8, 6}));
        } else if (!decode && cache == 0 && stages_ > 1) {
            steps = fmt::format(R"("micro_batches": {}, )", pick_size({1, 2, 4}));
        }
        return fmt::format(
            R"({{"mode": "{}", "batch_size": {}, "sequence_length": {}, "cache_length": {}, {}"dtype": "{}"}})",
            decode ? "decode" : "prefill", by_three() ? pick_size({6, 6, 12, 4, 1}) : pick_size({8, 8, 8, 4, 6, 1}),
            tokens, cache, steps, f32_only_ ? "f32" : pick({"f32", "f32", "f32", "bf16"}));
    }

    /// Zero, one or two axes, hardly ever one of `taken`; what was drawn is added to it.
    Names draw_entry(Names& taken) {
        Names entry;
        const std::int64_t wanted = pick_size({0, 0, 1, 1, 1, 2});
        for (std::int64_t i = 0; i < wanted; ++i) {
            const std::string axis = pick(axes_);
            const bool free = std::find(taken.begin(), taken.end(), axis) == taken.end();
            const bool repeated = std::find(entry.begin(), entry.end(), axis) != entry.end();
            if (!repeated && (free || one_in(60))) {
                entry.push_back(axis);
            }
        }
        taken.insert(taken.end(), entry.begin(), entry.end());
        return entry;
    }

    static std::string json(const Names& entry) {
        if (entry.empty()) {
            return "null";
        }
        return entry.size() == 1 ? fmt::format("\"{}\"", entry.front())
                                 : fmt::format("[\"{}\"]", fmt::join(entry, "\", \""));
    }

    std::string draw_attention_options() {
        if (one_in(3)) {
            return "";
        }
        return fmt::format(R"(, "cp_comm_type": "{}", "context_parallel_load_balance": {})",
                           pick({"auto", "auto", "p2p", "p2p", "a2a", "all_gather"}), pick({"true", "true", "false"}));
    }

    /// Every field is drawn; fields that meet in one tensor draw from the axes the others leave.
    std::string draw_fields() {
        std::string text;
        const auto set = [&](const char* field, Names& taken) {
            text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", field, json(draw_entry(taken)));
        };
        if (one_in(8)) {  // the defaults, on whatever axes the mesh has
            return text;
        }
        const auto give = [&](const char* field, const Names& entry) {
            text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", field, json(entry));
        };
        Names shared;  // an axis that cuts the sequence of queries and keys and nothing else of attention
        if (one_in(3)) {
            shared.push_back(pick(axes_));
        }
        Names batch = shared;
        set("batch_axis", batch);
        Names hidden = batch;
        if (shared.empty() || one_in(3)) {
            set("sequence_axis", hidden);
        } else {
            give("sequence_axis", shared);
        }
        set("hidden_state_axis", hidden);
        Names heads = batch;
        set("head_axis", heads);
        if (shared.empty()) {
            Names query = heads;
            set("query_sequence_axis", query);
            Names key = heads;
            set("key_sequence_axis", key);
        } else {
            give("query_sequence_axis", shared);
            give("key_sequence_axis", shared);
        }
        Names generation = batch;
        set("generation_head_axis", generation);
        if (one_in(3)) {
            set("generation_query_sequence_axis", generation);
        }
        if (one_in(6)) {
            set("attention_dim_axis", heads);
        }
        if (one_in(3)) {
            Names kv = batch;
            set("kv_head_axis", kv);
        }
        for (const char* field : {"mlp_intermediate_axis", "vocab_axis", "weight_storage_axis", "expert_axis"}) {
            Names none;
            if (one_in(2)) {
                set(field, none);
            }
        }
        return text;
    }

    std::string draw_rules() {
        const auto rule = [&](const char* pattern, int dims) {
            Names taken;
            std::string entries;
            for (int d = 0; d < dims; ++d) {
                entries += fmt::format("{}{}", d == 0 ? "" : ", ", json(draw_entry(taken)));
            }
            return fmt::format(R"(["{}", [{}]])", pattern, entries);
        };
        return fmt::format("[{}, {}, {}, {}, {}]", rule("bias$|norm|ln_|_ln", 1),
                           rule("embed|wte|word_embeddings|lm_head", 2),
                           rule("q_proj|k_proj|v_proj|query_key_value|c_attn", 2), rule("mlp", 2), rule(".*", 2));
    }

    Random random_;
    std::int64_t devices_;
    Names axes_;
    std::string mesh_;
    std::int64_t stages_ = 1;
    bool f32_only_ = false;  ///< the model drawn last
};

}  // namespace shardplan::test
