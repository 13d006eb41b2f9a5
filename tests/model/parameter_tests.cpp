// The parameters against published models: total counts, and names, shapes and parts of real checkpoints.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "base/checked.h"
#include "model/model_cases.h"

namespace shardplan::model {
namespace {

TEST_CASE("totals equal the published models'") {
    const Json cases = read_json(data_path("model/parameter_counts.json"));
    REQUIRE(cases.size() >= 90);
    for (const auto& [name, entry] : cases.items()) {
        CAPTURE(name);
        const ModelSpec model = read_ok(entry.at("config"));
        Workload decode;
        decode.mode = Mode::decode;
        CHECK(parameter_count(build_graph(model, decode)) == entry.at("parameters").get<std::int64_t>());
    }
}

Json read_header(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t size = 0;
    file.read(reinterpret_cast<char*>(&size), sizeof size);
    std::string text(static_cast<std::size_t>(size), ' ');
    file.read(text.data(), static_cast<std::streamsize>(size));
    REQUIRE(file.good());
    return Json::parse(text);
}

using Shapes = std::map<std::string, tensor::Shape>;

bool is_ignored(const ModelSpec& model, const std::string& name) {
    for (const std::string& pattern : model.names.ignored) {
        if (std::regex_match(name, std::regex(pattern))) {
            return true;
        }
    }
    return false;
}

/// With the optional prefix, without what is ignored.
Shapes stored_tensors(const std::string& folder, const ModelSpec& model) {
    Shapes shapes;
    const Json header = read_header(folder + "/model.safetensors");
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__" || is_ignored(model, name)) {
            continue;
        }
        const std::string& prefix = model.names.optional_prefix;
        const bool complete = name.starts_with(prefix) || name == "lm_head.weight";
        shapes[complete ? name : prefix + name] = entry.at("shape").get<tensor::Shape>();
    }
    return shapes;
}

Shapes expected_tensors(const Graph& graph) {
    Shapes shapes;
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
        for (const Parameter& part : stored_parts(graph.parameters[i])) {
            for (const int layer : layers_of(graph, static_cast<int>(i))) {
                shapes[name_in_layer(part.name, layer)] = part.stored_shape;
            }
        }
    }
    return shapes;
}

TEST_CASE("names and shapes equal the checkpoints'") {
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_path("logits"))) {
        const std::string name = entry.path().filename().string();
        if (!entry.is_directory()) {
            continue;
        }
        CAPTURE(name);
        const ModelSpec model = read_ok(read_json(entry.path().string() + "/config.json"));
        CHECK(model.stored_dtype == tensor::DType::f32);
        const Shapes stored = stored_tensors(entry.path().string(), model);
        const Shapes expected = expected_tensors(build_graph(model, Workload{}));
        for (const auto& [tensor, shape] : expected) {
            CAPTURE(tensor);
            REQUIRE(stored.contains(tensor));
            CHECK(stored.at(tensor) == shape);
        }
        CHECK(stored.size() == expected.size());
        ++compared;
    }
    CHECK(compared == 25);
}

/// How often each row of the fused dimension is taken by a part.
std::map<std::string, std::vector<int>> covered_rows(const Graph& graph) {
    std::map<std::string, std::vector<int>> rows;
    for (const Parameter& p : graph.parameters) {
        if (p.view.groups == 0) {
            continue;
        }
        auto& counts = rows[p.name];
        counts.resize(static_cast<std::size_t>(p.stored_shape.at(static_cast<std::size_t>(p.view.dim))));
        CHECK(p.shape.at(static_cast<std::size_t>(p.view.dim)) == p.view.groups * p.view.length);
        for (std::int64_t g = 0; g < p.view.groups; ++g) {
            for (std::int64_t i = 0; i < p.view.length; ++i) {
                ++counts.at(static_cast<std::size_t>(g * p.view.stride + p.view.offset + i));
            }
        }
    }
    return rows;
}

TEST_CASE("parts tile their fused tensor") {
    int fused = 0;
    const Json cases = read_json(data_path("model/parameter_counts.json"));
    for (const auto& [name, entry] : cases.items()) {
        CAPTURE(name);
        for (const auto& [tensor, counts] : covered_rows(build_graph(read_ok(entry.at("config")), Workload{}))) {
            CAPTURE(tensor);
            CHECK(std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; }));
            ++fused;
        }
    }
    CHECK(fused > 20);
}

TEST_CASE("rows of the fused layouts") {
    struct Row {
        const char* changes;
        const char* part;
        FusedView view;
    };
    const Row rows[] = {
        // 4 heads, 2 kv heads, head_dim 12: [q 48 | k 24 | v 24]
        {R"({"model_type": "phi3"})", "q", {0, 1, 96, 0, 48}},
        {R"({"model_type": "phi3"})", "k", {0, 1, 96, 48, 24}},
        {R"({"model_type": "phi3"})", "v", {0, 1, 96, 72, 24}},
        {R"({"model_type": "phi3"})", "up", {0, 1, 224, 112, 112}},
        // per kv head: its 2 query heads, its key, its value
        {R"({"model_type": "internlm2"})", "q", {0, 2, 48, 0, 24}},
        {R"({"model_type": "internlm2"})", "v", {0, 2, 48, 36, 12}},
        {R"({"model_type": "gpt_neox", "rotary_pct": 0.5})", "k", {0, 4, 36, 12, 12}},
        {R"({"model_type": "falcon", "num_kv_heads": 2, "num_key_value_heads": null})", "k", {0, 1, 72, 48, 12}},
        {R"({"model_type": "gpt2", "num_key_value_heads": null})", "v", {1, 1, 144, 96, 48}},
        {R"({"model_type": "gpt_bigcode", "multi_query": false})", "k", {0, 4, 36, 12, 12}},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        CAPTURE(std::string(row.part));
        const Graph graph = build_graph(small_model(row.changes), Workload{});
        bool found = false;
        for (const Parameter& p : graph.parameters) {
            if (p.part == row.part && p.name.ends_with(".weight")) {
                CHECK(p.view == row.view);
                found = true;
            }
        }
        CHECK(found);
    }
}

TEST_CASE("a tied embedding is one parameter; biases are parallel with their columns only") {
    const Graph tied = build_graph(small_model(R"({"tie_word_embeddings": true})"), Workload{});
    const Graph untied = build_graph(small_model(), Workload{});
    CHECK(parameter_count(untied) - parameter_count(tied) == 112 * 48);
    CHECK(layers_of(tied, 0) == std::vector<int>{-1});
    CHECK(tied.parameters[0].parallel == ParallelDim::vocab);
    CHECK(is_ignored(tied.model, "lm_head.weight"));
    CHECK_FALSE(is_ignored(untied.model, "lm_head.weight"));
    const Graph biased = build_graph(small_model(R"({"attention_bias": true, "mlp_bias": true})"), Workload{});
    int column = 0;
    int row = 0;
    for (const Parameter& p : biased.parameters) {
        column += p.kind == ParameterKind::column_bias && p.parallel != ParallelDim::none ? 1 : 0;
        row += p.kind == ParameterKind::row_bias && p.parallel == ParallelDim::none ? 1 : 0;
    }
    CHECK(column == 5);
    CHECK(row == 2);
}

TEST_CASE("a count that does not fit is an error, not a wrong number") {
    const ModelSpec model = small_model(R"({"hidden_size": 1099511627776, "intermediate_size": 1099511627776,
        "head_dim": 8})");
    CHECK_THROWS_AS(parameter_count(build_graph(model, Workload{})), base::OverflowError);
}

TEST_CASE("names in layers") {
    CHECK(name_in_layer("model.layers.{}.x", 12) == "model.layers.12.x");
    CHECK(name_in_layer("lm_head.weight", -1) == "lm_head.weight");
}

}  // namespace
}  // namespace shardplan::model
