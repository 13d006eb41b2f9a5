#include "model/graph.h"

#include <doctest/doctest.h>

#include <string>

#include "model/json_config.h"

namespace shardplan::model {
namespace {

ModelSpec read(const std::string& text) {
    diag::Diagnostics diagnostics;
    const auto model = read_model(to_config(Json::parse(text)), diagnostics);
    REQUIRE(model.has_value());
    return *model;
}

const char* const llama = R"({"model_type": "llama", "hidden_size": 48, "intermediate_size": 112, "vocab_size": 112,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "float32"})";

TEST_CASE("llama end to end") {
    Workload workload;
    workload.mode = Mode::decode;
    workload.sequence_length = 20;
    const Graph graph = build_graph(read(llama), workload);
    CHECK(parameter_count(graph) == 112 * 48 * 2 + 48 + 3 * (48 * 48 * 2 + 2 * 24 * 48 + 3 * 48 * 112 + 2 * 48));
}

}  // namespace
}  // namespace shardplan::model
