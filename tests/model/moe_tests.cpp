// Mixtures of experts: what configs say, the ops of a layer, the factors of the ops, the parts of the parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "model/model_cases.h"
#include "model/op_rule.h"

namespace shardplan::model {
namespace {

struct Row {
    const char* changes;
    std::function<bool(const ModelSpec&)> holds;
};
using M = const ModelSpec&;

const Row family_rows[] = {
    {R"({"model_type": "mixtral"})",
     [](M m) {
         return m.moe.experts == 8 && m.moe.routing.top_k == 2 && m.moe.routing.normalise &&
                m.moe.intermediate == 112 && m.layers[0].moe && m.norm.eps == 1e-5 && m.layers[0].sliding_window == 0;
     }},
    {R"({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 1})",
     [](M m) { return m.moe.experts == 4 && m.moe.routing.top_k == 1; }},
    {R"({"model_type": "qwen2_moe"})",
     [](M m) {
         return m.moe.experts == 60 && m.moe.routing.top_k == 4 && !m.moe.routing.normalise && m.moe.shared_gate &&
                m.moe.intermediate == 1408 && m.moe.shared_intermediate == 5632 && m.attention.q_bias;
     }},
    {R"({"model_type": "qwen3_moe", "norm_topk_prob": true})",
     [](M m) {
         return m.moe.experts == 128 && m.moe.routing.normalise && m.moe.shared_intermediate == 0 &&
                m.attention.qk_norm == QkNorm::per_head;
     }},
    {R"({"model_type": "qwen3_moe", "decoder_sparse_step": 2, "mlp_only_layers": [3]})",
     [](M m) { return !m.layers[0].moe && m.layers[1].moe && !m.layers[2].moe && !m.layers[3].moe; }},
    {R"({"model_type": "olmoe", "clip_qkv": 8})",
     [](M m) { return m.attention.qk_norm == QkNorm::full && m.attention.qkv_clip == 8.0 && m.moe.experts == 64; }},
    {R"({"model_type": "granitemoe", "logits_scaling": 4})",
     [](M m) {
         return m.moe.storage == ExpertStorage::rows && m.moe.routing.score == RouterScore::top_softmax &&
                m.logit_scale == 0.25 && m.moe.shared_intermediate == 0;
     }},
    {R"({"model_type": "granitemoeshared", "shared_intermediate_size": 32})",
     [](M m) { return m.moe.shared_intermediate == 32 && m.moe.shared_fused && !m.moe.shared_gate; }},
    {R"({"model_type": "phimoe", "lm_head_bias": true, "router_jitter_noise": 0.02})",
     [](M m) {
         return m.moe.routing.score == RouterScore::sparse_mixer && m.moe.routing.jitter == 0.02 && m.lm_head_bias &&
                m.norm.kind == NormKind::layer && m.norm.has_bias;
     }},
    {R"({"model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8})",
     [](M m) {
         return m.moe.bias && m.moe.router_bias && m.moe.swiglu_limit == 7.0 && m.attention.sinks &&
                m.attention.out_bias && m.moe.storage == ExpertStorage::interleaved &&
                m.layers[0].sliding_window == 8 && m.layers[1].sliding_window == 0 &&
                m.moe.routing.score == RouterScore::top_softmax;
     }},
    {R"({"model_type": "dbrx", "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 5e5},
         "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 16, "moe_top_k": 4}})",
     [](M m) {
         return m.attention.kv_heads == 2 && m.attention.qkv_clip == 8.0 && m.moe.intermediate == 64 &&
                m.moe.experts == 16 && m.moe.routing.top_k == 4 && m.moe.routing.normalise &&
                m.norm.kind == NormKind::layer && !m.norm.has_bias && m.moe.storage == ExpertStorage::flat &&
                m.attention.storage == QkvStorage::concatenated && m.layers[3].moe;
     }},
    {R"({"model_type": "dbrx", "ffn_config": "=null"})",
     [](M m) { return m.attention.kv_heads == 1 && m.moe.experts == 4 && m.moe.intermediate == 3584; }},
    {R"({"model_type": "llama4_text", "intermediate_size_mlp": 200, "interleave_moe_layer_step": 2})",
     [](M m) {
         return !m.layers[0].moe && m.layers[1].moe && m.mlp.intermediate == 200 && m.moe.intermediate == 112 &&
                m.moe.shared_intermediate == 112 && m.moe.routing.scale_input && m.layers[2].chunk == 8192 &&
                m.layers[2].rope && m.layers[3].chunk == 0 && !m.layers[3].rope && m.attention.qk_norm == QkNorm::l2 &&
                m.attention.temperature_scale == 0.1 && m.attention.rope.interleaved;
     }},
    {R"({"model_type": "llama4_text", "no_rope_layers": [0, 1, 1, 0], "moe_layers": [2], "use_qk_norm": false,
         "attn_temperature_tuning": 0, "attention_chunk_size": 16})",
     [](M m) {
         return !m.layers[0].rope && m.layers[1].rope && m.layers[2].moe && !m.layers[1].moe &&
                m.layers[1].chunk == 16 && m.layers[0].chunk == 0 && m.attention.qk_norm == QkNorm::none &&
                m.attention.temperature_scale == 0.0;
     }},
    {R"({"model_type": "minimax_m2", "head_dim": 16, "rotary_dim": 8, "num_local_experts": 8, "num_experts_per_tok": 2})",
     [](M m) {
         return m.attention.qk_norm == QkNorm::full && m.attention.rope.rotary_dim == 8 && m.moe.routing.normalise &&
                m.moe.routing.correction_bias && m.moe.routing.score == RouterScore::sigmoid && m.moe.experts == 8 &&
                m.names.router_correction.ends_with("block_sparse_moe.e_score_correction_bias");
     }},
    {R"({"model_type": "glm4_moe", "first_k_dense_replace": 3, "n_shared_experts": 2, "moe_intermediate_size": 16,
         "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5})",
     [](M m) {
         return !m.layers[2].moe && m.layers[3].moe && m.moe.shared_intermediate == 32 &&
                m.moe.routing.correction_bias && m.moe.routing.groups == 4 && m.moe.routing.scale == 2.5 &&
                m.moe.routing.score == RouterScore::sigmoid && m.attention.rope.rotary_dim == 64;
     }},
};

TEST_CASE("what the configs of experts say") {
    for (const Row& row : family_rows) {
        CAPTURE(std::string(row.changes));
        CHECK(row.holds(small_model(row.changes)));
    }
}

TEST_CASE("contradictions in the configs of experts") {
    struct Error {
        const char* changes;
        const char* code;
        const char* pointer;
    };
    const Error errors[] = {
        {R"({"model_type": "mixtral", "num_experts_per_tok": 9})", "SP2003", "/num_experts_per_tok"},
        {R"({"model_type": "mixtral", "num_local_experts": 0})", "SP1006", "/num_local_experts"},
        {R"({"model_type": "dbrx", "attn_config": {"kv_n_heads": 3}})", "SP2003", "/attn_config/kv_n_heads"},
        {R"({"model_type": "dbrx", "attn_config": 3})", "SP1005", "/attn_config"},
        {R"({"model_type": "dbrx", "ffn_config": {"moe_top_k": 5}})", "SP2003", "/ffn_config/moe_top_k"},
        {R"({"model_type": "dbrx", "ffn_config": {"moe_normalize_expert_weights": 2}})", "SP2002",
         "/ffn_config/moe_normalize_expert_weights"},
        {R"({"model_type": "dbrx", "ffn_config": {"ffn_act_fn": "silu"}})", "SP1005", "/ffn_config/ffn_act_fn"},
        {R"({"model_type": "minimax_m2", "attn_type_list": [1, 0, 1, 1]})", "SP2002", "/attn_type_list"},
        {R"({"model_type": "llama4_text", "no_rope_layers": [1]})", "SP2003", "/no_rope_layers"},
        {R"({"model_type": "llama4_text", "moe_layers": [7]})", "SP1006", "/moe_layers"},
        {R"({"model_type": "gpt_oss", "num_experts_per_tok": 129})", "SP2003", "/num_experts_per_tok"},
        {R"({"model_type": "qwen2_moe", "mlp_only_layers": [4]})", "SP1006", "/mlp_only_layers"},
        {R"({"model_type": "qwen2_moe", "mlp_only_layers": 4})", "SP1005", "/mlp_only_layers"},
        {R"({"model_type": "glm4_moe", "n_group": 3})", "SP2003", "/n_group"},
        {R"({"model_type": "glm4_moe", "n_group": 4, "topk_group": 5})", "SP2003", "/topk_group"},
        {R"({"model_type": "glm4_moe", "n_routed_experts": 16, "n_group": 8, "topk_group": 2})", "SP2003",
         "/topk_group"},
    };
    for (const Error& row : errors) {
        CAPTURE(std::string(row.changes));
        const auto found = read_errors(small_config(row.changes));
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == row.code);
        CHECK(found[0].pointer == row.pointer);
    }
}

const char* const qwen = R"({"model_type": "qwen2_moe", "num_experts": 8, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 24, "mlp_only_layers": [0, 1]})";

std::string op_names(const Block& block, const std::string& after) {
    std::string text;
    bool on = false;
    for (const Op& op : block.ops) {
        text += on ? (text.empty() ? "" : " ") + op.name : "";
        on = on || op.name == after;
    }
    return text;
}

TEST_CASE("dense layers and layers with experts are blocks of their own") {
    const Graph graph = build_graph(small_model(qwen), Workload{});
    REQUIRE(graph.blocks.size() == 4);
    CHECK(graph.blocks[1].name == "layer");
    CHECK(graph.blocks[1].layers == std::vector<int>{0, 1});
    CHECK(op_names(graph.blocks[1], "pre_mlp_norm") == "gate_proj up_proj glu down_proj mlp_residual");
    CHECK(graph.blocks[2].name == "layer.moe");
    CHECK(graph.blocks[2].layers == std::vector<int>{2, 3});
    CHECK(op_names(graph.blocks[2], "pre_mlp_norm") ==
          "router route experts shared_gate_proj shared_up_proj shared_glu shared_down_proj shared_router shared_gate "
          "add_shared mlp_residual");
    const Graph clipped = build_graph(small_model(R"({"model_type": "olmoe", "clip_qkv": 8})"), Workload{});
    CHECK(op_names(clipped.blocks[1], "q_proj").starts_with("q_norm q_clip q_split"));
}

TEST_CASE("factors of routing and experts") {
    const Graph graph = build_graph(small_model(qwen), Workload{});
    const Block& block = graph.blocks[2];
    CHECK(text_of(rule_of(op_of(block, "route"), block)) == "bsx->bsx sums: whole:x");
    CHECK(text_of(rule_of(op_of(block, "experts"), block)) == "bse,bsx,xfe,xfe,xof->bso sums:xf whole:e");
    const OpRule gate = rule_of(op_of(block, "shared_gate"), block);
    CHECK(text_of(gate) == "bse,bsone->bse sums: whole:one");
    CHECK(gate.passes(0));
    CHECK_FALSE(gate.passes(1));
    const Graph corrected = build_graph(small_model(R"({"model_type": "glm4_moe"})"), Workload{});
    CHECK(text_of(rule_of(op_of(corrected.blocks[2], "route"), corrected.blocks[2])) == "bsx,x->bsx sums: whole:x");
    CHECK(tensor_of(block, op_of(block, "route").output).dtype == tensor::DType::f32);
}

TEST_CASE("multiply-adds of experts are those of the chosen ones") {
    const Graph graph = build_graph(small_model(qwen), Workload{});
    const OpRule rule = rule_of(op_of(graph.blocks[2], "experts"), graph.blocks[2]);
    double sum = 0.0;
    for (const OpRule::Term& term : rule.multiply_adds) {
        double product = term.count;
        for (const int f : term.factors) {
            product *= static_cast<double>(rule.factors[static_cast<std::size_t>(f)].size);
        }
        sum += product;
    }
    const auto tokens = static_cast<double>(graph.workload.batch_size * graph.workload.query_length());
    CHECK(sum == doctest::Approx(tokens * 4 * 3 * 16 * 48));
}

TEST_CASE("parameters of experts and their parts in the checkpoint") {
    const Graph graph = build_graph(small_model(qwen), Workload{});
    const Graph stacked = build_graph(small_model(R"({"model_type": "granitemoe"})"), Workload{});
    const auto find = [](const Graph& g, const std::string& name, const std::string& part) {
        for (const Parameter& p : g.parameters) {
            if (p.name.find(name) != std::string::npos && p.part == part) {
                return p;
            }
        }
        throw std::runtime_error("no parameter " + name);
    };
    const Parameter down = find(graph, "experts.{expert}.down_proj", "");
    CHECK(down.shape == tensor::Shape{8, 48, 16});
    CHECK(down.kind == ParameterKind::expert_row);
    const std::vector<Parameter> parts = stored_parts(down);
    REQUIRE(parts.size() == 8);
    CHECK(parts[5].name == "model.layers.{}.mlp.experts.5.down_proj.weight");
    CHECK(parts[5].shape == tensor::Shape{48, 16});
    CHECK(parts[5].stored_shape == tensor::Shape{48, 16});
    CHECK(example_name(down, 3) == "model.layers.3.mlp.experts.0.down_proj.weight");
    const Parameter up = find(stacked, "input_linear", "up");
    CHECK(up.shape == tensor::Shape{8, 112, 48});
    CHECK(up.stored_shape == tensor::Shape{8, 224, 48});
    CHECK(up.view == FusedView{1, 1, 224, 112, 112});
    CHECK(stored_parts(up).size() == 1);
    CHECK(find(graph, "mlp.gate.weight", "").kind == ParameterKind::replicated_linear);
}

TEST_CASE("experts stored by columns, in turn and flat") {
    struct Stored {
        const char* changes;
        const char* name;
        const char* part;
        tensor::Shape shape;
        tensor::Shape stored;
        FusedView view;
    };
    const char* const oss = R"({"model_type": "gpt_oss", "num_local_experts": 4})";
    const char* const llama = R"({"model_type": "llama4_text", "num_local_experts": 4})";
    const char* const dbrx = R"({"model_type": "dbrx", "ffn_config": {"ffn_hidden_size": 112}})";
    const Stored rows[] = {
        {oss, "experts.gate_up_proj", "gate", {4, 48, 112}, {4, 48, 224}, {2, 112, 2, 0, 1}},
        {oss, "experts.gate_up_proj", "up", {4, 48, 112}, {4, 48, 224}, {2, 112, 2, 1, 1}},
        {oss, "experts.gate_up_proj_bias", "up", {4, 112}, {4, 224}, {1, 112, 2, 1, 1}},
        {oss, "experts.down_proj", "", {4, 112, 48}, {4, 112, 48}, {}},
        {oss, "experts.down_proj_bias", "", {4, 48}, {4, 48}, {}},
        {oss, "self_attn.sinks", "", {4}, {4}, {}},
        {llama, "experts.gate_up_proj", "up", {4, 48, 112}, {4, 48, 224}, {2, 1, 224, 112, 112}},
        {llama, "experts.down_proj", "", {4, 112, 48}, {4, 112, 48}, {}},
        {dbrx, "experts.mlp.v1", "", {4, 112, 48}, {448, 48}, {}},
        {dbrx, "experts.mlp.w2", "", {4, 112, 48}, {448, 48}, {}},
    };
    for (const Stored& row : rows) {
        CAPTURE(std::string(row.changes));
        CAPTURE(std::string(row.name));
        const Graph graph = build_graph(small_model(row.changes), Workload{});
        const auto found = std::find_if(graph.parameters.begin(), graph.parameters.end(), [&](const Parameter& p) {
            return p.name.ends_with(row.name) && p.part == row.part;
        });
        REQUIRE(found != graph.parameters.end());
        CHECK(found->shape == row.shape);
        CHECK(found->stored_shape == row.stored);
        CHECK(found->view == row.view);
    }
    const Graph graph = build_graph(small_model(oss), Workload{});
    CHECK(text_of(rule_of(op_of(graph.blocks[2], "experts"), graph.blocks[2])) ==
          "bse,bsx,xef,xef,xfo,xf,xf,xo->bso sums:xf whole:e");
    CHECK(text_of(rule_of(op_of(graph.blocks[2], "attention"), graph.blocks[2])) ==
          "bshd,bth'd,bth'v,h->bshv sums: whole:dv");
}

}  // namespace
}  // namespace shardplan::model
