// DeepSeek and latent attention: what configs say, the ops of a layer, the factors of the ops, the parts of the
// weights.
#include <doctest/doctest.h>

#include <cmath>
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

double scale_of(double dim, double factor, double mscale) {
    const double magnitude = 0.1 * mscale * std::log(factor) + 1.0;
    return magnitude * magnitude / std::sqrt(dim);
}

const Row rows[] = {
    {R"({"model_type": "deepseek_v2", "num_key_value_heads": 4, "num_experts_per_tok": 6})",
     [](M m) {
         const LatentSpec& l = m.attention.latent;
         return l.kv_rank == 512 && l.q_rank == 1536 && l.nope_dim == 128 && l.rope_dim == 64 && l.value_dim == 128 &&
                l.cache_width() == 576 && m.attention.head_dim == 192 && m.attention.rope.rotary_dim == 64 &&
                m.attention.rope.interleaved && m.layers[0].moe && m.moe.routing.score == RouterScore::softmax &&
                !m.moe.routing.normalise && m.moe.routing.groups == 1 && m.moe.shared_intermediate == 2 * 1407 &&
                !m.moe.routing.correction_bias && std::abs(m.attention.scale - scale_of(192, 1, 0)) < 1e-12;
     }},
    {R"({"model_type": "deepseek_v2", "num_key_value_heads": null, "num_experts_per_tok": 2, "q_lora_rank": "=null",
         "moe_layer_freq": 2, "first_k_dense_replace": 1, "n_shared_experts": "=null", "num_hidden_layers": 6})",
     [](M m) {
         return m.attention.latent.q_rank == 0 && m.names.q == "model.layers.{}.self_attn.q_proj" && !m.layers[0].moe &&
                !m.layers[1].moe && m.layers[2].moe && !m.layers[3].moe && m.layers[4].moe &&
                m.moe.shared_intermediate == 0 && m.attention.kv_heads == 4;
     }},
    {R"({"model_type": "deepseek_v2", "num_key_value_heads": 4, "num_experts_per_tok": 6,
         "moe_layer_freq": [1, 0, 1], "first_k_dense_replace": 2, "num_hidden_layers": 3})",
     [](M m) { return m.layers[0].moe && !m.layers[1].moe && m.layers[2].moe; }},
    {R"({"model_type": "deepseek_v2", "num_key_value_heads": 4, "num_experts_per_tok": 6, "norm_topk_prob": true,
         "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3, "routed_scaling_factor": 16.0})",
     [](M m) {
         return m.moe.routing.groups == 8 && m.moe.routing.group_top_k == 3 && m.moe.routing.normalise &&
                m.moe.routing.scale == 1.0 && m.moe.routing.group_score == GroupScore::maximum;
     }},
    {R"({"model_type": "deepseek_v2", "num_key_value_heads": 4, "n_routed_experts": "=null"})",
     [](M m) { return m.moe.experts == 0 && !m.layers[3].moe; }},
    {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4})",
     [](M m) {
         return !m.layers[2].moe && m.layers[3].moe && m.moe.routing.score == RouterScore::sigmoid &&
                m.moe.routing.correction_bias && m.moe.routing.normalise && m.moe.routing.scale == 2.5 &&
                m.moe.routing.groups == 8 && m.moe.routing.group_top_k == 4 &&
                m.moe.routing.group_score == GroupScore::top_two_sum && m.moe.shared_intermediate == 2048 &&
                m.names.kv_down == "model.layers.{}.self_attn.kv_a_proj_with_mqa" && m.notes.empty();
     }},
    {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "attention_bias": true,
         "rope_interleave": false, "num_nextn_predict_layers": 1, "rope_scaling": {"type": "yarn", "factor": 40,
         "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}})",
     [](M m) {
         return m.attention.latent.norm.eps == 1e-6 && m.norm.eps == 1e-5 && m.attention.latent.down_bias &&
                m.attention.out_bias && !m.attention.q_bias && !m.attention.rope.interleaved && m.notes.size() == 1 &&
                m.attention.rope.attention_factor == 1.0 &&
                std::abs(m.attention.scale - scale_of(192, 40, 1.0)) < 1e-12;
     }},
    {R"({"model_type": "kimi_k2", "num_key_value_heads": 4, "n_group": 1, "topk_group": 1})",
     [](M m) { return m.moe.routing.groups == 1 && m.moe.routing.correction_bias && m.family == "deepseek"; }},
    {R"({"model_type": "deepseek_vl_v2", "use_mla": false, "kv_lora_rank": "=null", "num_experts_per_tok": 6,
         "v_head_dim": 0})",
     [](M m) {
         return !m.attention.is_latent() && m.attention.head_dim == 12 && !m.attention.rope.interleaved &&
                m.attention.kv_heads == 2 && m.names.k == "model.layers.{}.self_attn.k_proj";
     }},
};

TEST_CASE("what the configs of DeepSeek say") {
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        CHECK(row.holds(small_model(row.changes)));
    }
}

TEST_CASE("contradictions in the configs of DeepSeek") {
    struct Error {
        const char* changes;
        const char* code;
        const char* pointer;
    };
    const Error errors[] = {
        {R"({"model_type": "deepseek_v3"})", "SP2003", "/num_key_value_heads"},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "kv_lora_rank": 0})", "SP1006", "/kv_lora_rank"},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "qk_rope_head_dim": 3})", "SP2003", ""},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "topk_method": "best"})", "SP1008", "/topk_method"},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "scoring_func": "relu"})", "SP1008",
         "/scoring_func"},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "n_group": 7})", "SP2003", "/n_group"},
        {R"({"model_type": "deepseek_v2", "num_key_value_heads": 4})", "SP1007", ""},
        {R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "index_n_heads": 64})", "SP2002", "/index_n_heads"},
        {R"({"kv_lora_rank": 512})", "SP2002", "/kv_lora_rank"},
    };
    for (const Error& row : errors) {
        CAPTURE(std::string(row.changes));
        const auto found = read_errors(small_config(row.changes));
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == row.code);
        CHECK(found[0].pointer == row.pointer);
    }
}

const char* const small = R"({"model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": 20,
    "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "first_k_dense_replace": 4})";

std::string op_names(const Block& block) {
    std::string text;
    for (const Op& op : block.ops) {
        text += (text.empty() ? "" : " ") + op.name;
    }
    return text.substr(0, text.find(" merge_heads"));
}

Workload decode() {
    Workload workload;
    workload.mode = Mode::decode;
    return workload;
}

TEST_CASE("order of operations of latent attention") {
    const std::string down =
        "input_norm q_a_proj q_a_norm q_b_proj q_split q_rope kv_a_proj kv_a_norm k_rope_proj k_rope_split k_rope ";
    const std::string cache = "latent_row cache_row latent_cache ";
    const ModelSpec model = small_model(small);
    CHECK(op_names(build_graph(model, Workload{}).blocks[1]) ==
          down + "k_b_proj k_split v_b_proj v_split k_join attention");
    CHECK(op_names(build_graph(model, decode()).blocks[1]) ==
          down + cache +
              "cached_latent cached_latent_rows cached_k_rope k_b_proj k_split v_b_proj v_split k_join attention");
    CHECK(op_names(build_graph(model, decode(), true).blocks[1]) ==
          down + cache + "q_nope q_rotated q_absorb q_join attention v_absorb");
    CHECK(op_names(build_graph(model, Workload{}, true).blocks[1]) == op_names(build_graph(model, {}).blocks[1]));
}

TEST_CASE("both decode steps have the same parameters") {
    const ModelSpec model = small_model(small);
    const Graph expanded = build_graph(model, decode());
    const Graph absorbed = build_graph(model, decode(), true);
    CHECK(parameter_count(expanded) == parameter_count(absorbed));
    for (const Parameter& p : expanded.parameters) {
        CAPTURE(p.name);
        CAPTURE(p.part);
        CHECK(std::any_of(absorbed.parameters.begin(), absorbed.parameters.end(), [&](const Parameter& other) {
            return other.name == p.name && other.part == p.part && other.shape == p.shape && other.view == p.view &&
                   other.kind == p.kind && other.parallel == p.parallel;
        }));
    }
}

TEST_CASE("factors of the ops of latent attention") {
    const ModelSpec model = small_model(small);
    const Graph prefill = build_graph(model, Workload{});
    const Graph absorbed = build_graph(model, decode(), true);
    const auto rule = [](const Graph& graph, const char* op) {
        return text_of(rule_of(op_of(graph.blocks[1], op), graph.blocks[1]));
    };
    CHECK(rule(prefill, "attention") == "bshd,bthd,bthv->bshv sums: whole:dv");
    CHECK(rule(prefill, "k_join") == "bshd,bsonee->bshde sums: whole:dedeone");
    CHECK(rule(absorbed, "attention") == "bshd,bth'd->bshv sums: whole:dv");
    CHECK(rule(absorbed, "q_join") == "bshd,bshe->bshde sums: whole:dede");
    CHECK(rule(absorbed, "q_nope") == "bshn->bshm sums: whole:nm");
    CHECK(rule(absorbed, "q_absorb") == "bshi,ho->bsho sums: whole:i");
    CHECK(rule(absorbed, "v_absorb") == "bshi,hi->bsho sums:i whole:o");
    CHECK(rule(absorbed, "latent_cache") == "bsgd->bcgd sums: whole:s");
}

TEST_CASE("parts of the projections: each head has its key's rows, then its value's") {
    const Graph graph = build_graph(small_model(small), Workload{});
    const auto find = [&](const std::string& name, const std::string& part) {
        for (const Parameter& p : graph.parameters) {
            if (p.name.find(name) != std::string::npos && p.part == part) {
                return p;
            }
        }
        throw std::runtime_error("no parameter " + name);
    };
    CHECK(find("kv_b_proj", "k").view == FusedView{0, 4, 14, 0, 8});
    CHECK(find("kv_b_proj", "v").view == FusedView{0, 4, 14, 8, 6});
    CHECK(find("kv_b_proj", "k").stored_shape == tensor::Shape{56, 16});
    CHECK(find("kv_a_proj_with_mqa", "latent").view == FusedView{0, 1, 20, 0, 16});
    CHECK(find("kv_a_proj_with_mqa", "rope").view == FusedView{0, 1, 20, 16, 4});
    CHECK(find("q_a_proj", "").kind == ParameterKind::latent_linear);
    CHECK(find("q_b_proj", "").shape == tensor::Shape{48, 20});
    CHECK(find("o_proj", "").shape == tensor::Shape{48, 24});
}

TEST_CASE("multiply-adds of attention count keys and values by their own widths") {
    const Graph graph = build_graph(small_model(small), Workload{});
    const Block& block = graph.blocks[1];
    const OpRule rule = rule_of(op_of(block, "attention"), block);
    double sum = 0.0;
    for (const OpRule::Term& term : rule.multiply_adds) {
        double product = term.count;
        for (const int f : term.factors) {
            product *= static_cast<double>(rule.factors[static_cast<std::size_t>(f)].size);
        }
        sum += product;
    }
    const auto tokens = static_cast<double>(graph.workload.query_length());
    CHECK(sum == doctest::Approx(static_cast<double>(graph.workload.batch_size) * tokens * tokens * 4 * (12 + 6)));
}

}  // namespace
}  // namespace shardplan::model
