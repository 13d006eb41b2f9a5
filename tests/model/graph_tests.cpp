// The structure of the graph: which ops in which order, with which roles and shapes.
#include "model/graph.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "model/model_cases.h"
#include "model/op_rule.h"

namespace shardplan::model {
namespace {

std::string op_names(const Block& block) {
    std::string text;
    for (const Op& op : block.ops) {
        text += (text.empty() ? "" : " ") + op.name;
    }
    return text;
}

const Block& block_named(const Graph& graph, const std::string& name) {
    for (const Block& block : graph.blocks) {
        if (block.name == name) {
            return block;
        }
    }
    throw std::runtime_error("no block " + name);
}

TEST_CASE("order of operations in a layer") {
    struct Row {
        const char* changes;
        const char* ops;
    };
    const Row rows[] = {
        {"{}",
         "input_norm q_proj q_split q_rope k_proj k_split k_rope v_proj v_split attention merge_heads o_proj "
         "attention_residual pre_mlp_norm gate_proj up_proj glu down_proj mlp_residual"},
        {R"({"model_type": "qwen2"})",
         "input_norm q_proj q_proj_bias q_split q_rope k_proj k_proj_bias k_split k_rope v_proj v_proj_bias v_split "
         "attention merge_heads o_proj attention_residual pre_mlp_norm gate_proj up_proj glu down_proj mlp_residual"},
        {R"({"model_type": "qwen3"})",
         "input_norm q_proj q_split q_norm q_rope k_proj k_split k_norm k_rope v_proj v_split attention merge_heads "
         "o_proj attention_residual pre_mlp_norm gate_proj up_proj glu down_proj mlp_residual"},
        {R"({"model_type": "olmo2"})",
         "q_proj q_norm q_split q_rope k_proj k_norm k_split k_rope v_proj v_split attention merge_heads o_proj "
         "post_attention_norm attention_residual gate_proj up_proj glu down_proj post_mlp_norm mlp_residual"},
        {R"({"model_type": "olmo", "clip_qkv": 8})",
         "input_norm q_proj q_clip q_split q_rope k_proj k_clip k_split k_rope v_proj v_clip v_split attention "
         "merge_heads o_proj attention_residual pre_mlp_norm gate_proj up_proj glu down_proj mlp_residual"},
        {R"({"model_type": "phi"})",
         "input_norm q_proj q_proj_bias q_split q_rope k_proj k_proj_bias k_split k_rope v_proj v_proj_bias v_split "
         "attention merge_heads o_proj up_proj up_proj_bias activation down_proj branches o_proj_bias down_proj_bias "
         "residual"},
        {R"({"model_type": "gpt2", "num_key_value_heads": null})",
         "input_norm q_proj q_proj_bias q_split k_proj k_proj_bias k_split v_proj v_proj_bias v_split attention "
         "merge_heads o_proj o_proj_bias attention_residual pre_mlp_norm up_proj up_proj_bias activation down_proj "
         "down_proj_bias mlp_residual"},
        {R"({"model_type": "opt", "do_layer_norm_before": false, "enable_bias": false})",
         "q_proj q_split k_proj k_split v_proj v_split attention merge_heads o_proj attention_residual "
         "post_attention_norm up_proj activation down_proj mlp_residual post_mlp_norm"},
        {R"({"model_type": "granite", "residual_multiplier": 0.5})",
         "input_norm q_proj q_split q_rope k_proj k_split k_rope v_proj v_split attention merge_heads o_proj "
         "attention_scale attention_residual pre_mlp_norm gate_proj up_proj glu down_proj mlp_scale mlp_residual"},
        {R"({"model_type": "gpt_neox", "rotary_pct": 0.5, "attention_bias": false})",
         "input_norm pre_mlp_norm q_proj q_split q_rope k_proj k_split k_rope v_proj v_split attention merge_heads "
         "o_proj up_proj up_proj_bias activation down_proj branches down_proj_bias residual"},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        const Graph graph = build_graph(small_model(row.changes), Workload{});
        REQUIRE(graph.blocks.size() == 3);
        CHECK(op_names(graph.blocks[1]) == row.ops);
    }
}

TEST_CASE("embedding and head") {
    struct Row {
        const char* changes;
        const char* embedding;
        const char* head;
    };
    const Row rows[] = {
        {"{}", "embedding", "final_norm lm_head"},
        {R"({"model_type": "gemma2", "final_logit_softcapping": 3.0, "sliding_window": "=null"})",
         "embedding embedding_scale", "final_norm lm_head logit_softcap"},
        {R"({"model_type": "bloom"})", "embedding embedding_norm", "final_norm lm_head"},
        {R"({"model_type": "gpt2"})", "embedding position_embedding add_positions", "final_norm lm_head"},
        {R"({"model_type": "opt", "do_layer_norm_before": false, "word_embed_proj_dim": 24})",
         "embedding project_in position_embedding add_positions", "project_out lm_head"},
        {R"({"model_type": "phi"})", "embedding", "final_norm lm_head lm_head_bias"},
        {R"({"model_type": "cohere"})", "embedding", "final_norm lm_head logit_scale"},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        const Graph graph = build_graph(small_model(row.changes), Workload{});
        CHECK(op_names(graph.blocks.front()) == row.embedding);
        CHECK(op_names(graph.blocks.back()) == row.head);
        const Block& head = graph.blocks.back();
        CHECK(tensor_of(head, head.output).role == TensorRole::logits);
        CHECK(tensor_of(head, head.output).shape == tensor::Shape{1, 128, 112});
        const Block& embedding = graph.blocks.front();
        CHECK(tensor_of(embedding, embedding.output).role == TensorRole::hidden);
        CHECK(tensor_of(embedding, 0).dtype == tensor::DType::i32);
    }
}

TEST_CASE("roles and shapes of a layer") {
    Workload workload;
    workload.batch_size = 2;
    workload.sequence_length = 12;
    const Graph graph = build_graph(small_model(), workload);
    const Block& layer = block_named(graph, "layer");
    struct Row {
        const char* op;
        TensorRole role;
        tensor::Shape shape;
        Slot slot;
    };
    const Row rows[] = {
        {"input_norm", TensorRole::free, {2, 12, 48}, Slot::input_norm},
        {"q_proj", TensorRole::query_flat, {2, 12, 48}, Slot::qkv},
        {"k_proj", TensorRole::key_flat, {2, 12, 24}, Slot::qkv},
        {"v_proj", TensorRole::key_flat, {2, 12, 24}, Slot::qkv},
        {"q_rope", TensorRole::query, {2, 12, 4, 12}, Slot::none},
        {"k_split", TensorRole::key, {2, 12, 2, 12}, Slot::none},
        {"attention", TensorRole::attention_output, {2, 12, 4, 12}, Slot::core_attention},
        {"merge_heads", TensorRole::attention_merged, {2, 12, 48}, Slot::none},
        {"o_proj", TensorRole::partial_hidden, {2, 12, 48}, Slot::attention_out},
        {"attention_residual", TensorRole::hidden, {2, 12, 48}, Slot::none},
        {"gate_proj", TensorRole::mlp_intermediate, {2, 12, 112}, Slot::fc1},
        {"glu", TensorRole::mlp_intermediate, {2, 12, 112}, Slot::activation},
        {"down_proj", TensorRole::partial_hidden, {2, 12, 48}, Slot::fc2},
        {"mlp_residual", TensorRole::hidden, {2, 12, 48}, Slot::none},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.op));
        const Op& op = op_of(layer, row.op);
        CHECK(tensor_of(layer, op.output).role == row.role);
        CHECK(tensor_of(layer, op.output).shape == row.shape);
        CHECK(tensor_of(layer, op.output).dtype == workload.dtype);
        CHECK(op.slot == row.slot);
    }
}

TEST_CASE("the cache") {
    Workload workload;
    workload.batch_size = 3;
    workload.sequence_length = 20;
    workload.mode = Mode::decode;
    const Graph decode = build_graph(small_model(), workload);
    const Block& layer = block_named(decode, "layer");
    const Op& attention = op_of(layer, "attention");
    const TensorInfo& keys = tensor_of(layer, attention.inputs.at(1));
    CHECK(keys.name == "cache.k");
    CHECK(keys.kind == TensorKind::cache);
    CHECK(keys.shape == tensor::Shape{3, 32, 2, 12});
    CHECK(attention.attributes.from_cache);
    CHECK(op_of(layer, "k_cache").output == attention.inputs.at(1));
    CHECK(op_of(layer, "v_cache").output == attention.inputs.at(2));
    CHECK(tensor_of(layer, op_of(layer, "q_proj").output).shape == tensor::Shape{3, 1, 48});

    workload.mode = Mode::prefill;
    workload.cache_length = 40;
    const Graph prefill = build_graph(small_model(), workload);
    const Block& kept = block_named(prefill, "layer");
    CHECK(tensor_of(kept, op_of(kept, "k_cache").output).shape == tensor::Shape{3, 40, 2, 12});
    CHECK(tensor_of(kept, op_of(kept, "attention").inputs.at(1)).role == TensorRole::key);
    CHECK_FALSE(op_of(kept, "attention").attributes.from_cache);
}

TEST_CASE("layers of different kinds are blocks of their own") {
    struct Row {
        const char* changes;
        std::vector<std::string> blocks;
        std::vector<int> first_layers;
    };
    const Row rows[] = {
        {R"({"model_type": "gemma2", "sliding_window": 8})", {"layer.sliding", "layer"}, {0, 2}},
        {R"({"model_type": "smollm3"})", {"layer", "layer.nope"}, {0, 1, 2}},
        {R"({"model_type": "mistral", "sliding_window": 8})", {"layer.sliding"}, {0, 1, 2, 3}},
        {R"({"model_type": "olmo3", "sliding_window": 8})", {"layer.sliding", "layer"}, {0, 1, 2}},
        {R"({"model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 3})",
         {"layer", "layer.sliding"},
         {0, 1, 2}},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        const Graph graph = build_graph(small_model(row.changes), Workload{});
        REQUIRE(graph.blocks.size() == row.blocks.size() + 2);
        for (std::size_t i = 0; i < row.blocks.size(); ++i) {
            CHECK(graph.blocks[i + 1].name == row.blocks[i]);
        }
        CHECK(graph.blocks[1].layers == row.first_layers);
        REQUIRE(graph.sequence.size() == 6);
        for (int layer = 0; layer < 4; ++layer) {
            const BlockUse& use = graph.sequence[static_cast<std::size_t>(layer) + 1];
            CHECK(use.layer == layer);
            const auto& layers = graph.blocks[static_cast<std::size_t>(use.block)].layers;
            CHECK(std::find(layers.begin(), layers.end(), layer) != layers.end());
        }
        CHECK(layers_of(graph, 1) == std::vector<int>{0, 1, 2, 3});
    }
}

void check_rules(const Block& block, std::set<OpKind>& kinds) {
    std::set<std::string> names;
    for (const Op& op : block.ops) {
        CAPTURE(op.name);
        CHECK(names.insert(op.name).second);
        kinds.insert(op.kind);
        const OpRule rule = rule_of(op, block);
        REQUIRE(rule.inputs.size() == op.inputs.size());
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            CHECK(rule.inputs[i].size() == tensor_of(block, op.inputs[i]).shape.size());
            CHECK(op.inputs[i] != op.output);
        }
        CHECK(rule.output.size() == tensor_of(block, op.output).shape.size());
    }
}

TEST_CASE("every op of every model has a rule that fits its tensors") {
    std::set<OpKind> kinds;
    Workload decode;
    decode.mode = Mode::decode;
    const Json cases = read_json(data_path("model/parameter_counts.json"));
    for (const auto& [name, entry] : cases.items()) {
        CAPTURE(name);
        const ModelSpec model = read_ok(entry.at("config"));
        for (const Graph& graph :
             {build_graph(model, Workload{}), build_graph(model, decode), build_graph(model, decode, true)}) {
            for (const Block& block : graph.blocks) {
                check_rules(block, kinds);
            }
        }
    }
    CHECK(kinds.size() == 23);
}

TEST_CASE("the gemma embedding scale is rounded to the dtype") {
    Workload workload;
    workload.dtype = tensor::DType::bf16;
    const ModelSpec model = small_model(R"({"model_type": "gemma", "num_key_value_heads": 1})");
    const Graph bf16 = build_graph(model, workload);
    CHECK(op_of(bf16.blocks[0], "embedding_scale").attributes.factor == 6.9375);
    workload.dtype = tensor::DType::f32;
    CHECK(op_of(build_graph(model, workload).blocks[0], "embedding_scale").attributes.factor ==
          doctest::Approx(6.92820323));
}

}  // namespace
}  // namespace shardplan::model
