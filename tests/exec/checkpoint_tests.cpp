#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "config/safetensors.h"
#include "exec/checkpoint_weights.h"
#include "exec/models.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"
#include "exec/temporary.h"

using namespace shardplan;
using base::Interval;
using tensor::DType;

namespace {

/// Elements of the block one by one, from the definition of FusedView.
std::vector<std::int64_t> elements_of(const model::Parameter& parameter, const std::vector<Interval>& ranges) {
    std::vector<std::int64_t> elements;
    const std::int64_t columns = parameter.stored_shape[1];
    const model::FusedView& view = parameter.view;
    const auto stored = [&](int dim, std::int64_t i) {
        const bool cut = view.groups > 0 && view.dim == dim;
        return cut ? i / view.length * view.stride + view.offset + i % view.length : i;
    };
    for (std::int64_t r = ranges[0].begin; r < ranges[0].end; ++r) {
        for (std::int64_t c = ranges[1].begin; c < ranges[1].end; ++c) {
            elements.push_back(stored(0, r) * columns + stored(1, c));
        }
    }
    return elements;
}

std::vector<std::int64_t> expand(const std::vector<exec::Run>& runs) {
    std::vector<std::int64_t> elements;
    for (const exec::Run& run : runs) {
        for (std::int64_t i = 0; i < run.count; ++i) {
            elements.push_back(run.begin + i);
        }
    }
    return elements;
}

tensor::Checkpoint read_back(const std::string& path) {
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(path, diagnostics);
    REQUIRE_MESSAGE(checkpoint, test::text_of(diagnostics));
    return *checkpoint;
}

std::vector<float> fill(const exec::WeightSource& source, const model::Parameter& parameter, int layer) {
    std::vector<float> values(static_cast<std::size_t>(tensor::element_count(parameter.shape)));
    source.fill(parameter, layer, exec::whole_ranges(parameter.shape),
                {reinterpret_cast<std::byte*>(values.data()), DType::f32, parameter.shape});
    return values;
}

}  // namespace

TEST_CASE("runs of a block cover its elements in order, for every kind of fusion") {
    model::Parameter parameter;
    const model::FusedView views[] = {{},                // whole
                                      {0, 1, 12, 4, 6},  // one group of rows
                                      {0, 3, 4, 1, 2},   // rows of each head
                                      {1, 1, 8, 3, 4},   // columns of a Conv1D
                                      {1, 2, 4, 2, 2}};
    for (const model::FusedView& view : views) {
        parameter.view = view;
        parameter.stored_shape = {12, 8};
        parameter.shape = parameter.stored_shape;
        if (view.groups > 0) {
            parameter.shape[static_cast<std::size_t>(view.dim)] = view.groups * view.length;
        }
        for (std::int64_t row = 0; row < parameter.shape[0]; ++row) {
            for (std::int64_t column = 0; column < parameter.shape[1]; ++column) {
                for (const std::vector<Interval>& ranges :
                     {std::vector<Interval>{{0, row + 1}, {column, parameter.shape[1]}},
                      std::vector<Interval>{{row, parameter.shape[0]}, {0, column + 1}}}) {
                    CHECK(expand(exec::stored_runs(parameter, ranges)) == elements_of(parameter, ranges));
                }
            }
        }
    }
}

TEST_CASE("neighbouring rows are read at once") {
    model::Parameter parameter;
    parameter.stored_shape = parameter.shape = {12, 8};
    CHECK(exec::stored_runs(parameter, std::vector<Interval>{{2, 7}, {0, 8}}) == std::vector<exec::Run>{{16, 40}});
    CHECK(exec::stored_runs(parameter, std::vector<Interval>{{2, 2}, {0, 8}}).empty());
}

TEST_CASE("all float types are converted") {
    const test::TemporaryDirectory directory;
    const auto bytes_of = [](auto... values) {
        std::vector<std::byte> bytes;
        (bytes.insert(bytes.end(), reinterpret_cast<std::byte*>(&values),
                      reinterpret_cast<std::byte*>(&values) + sizeof values),
         ...);
        return bytes;
    };
    using Half = std::uint16_t;
    const std::string path = directory / "model.safetensors";
    exec::write_safetensors(path, {{"f32", DType::f32, {2}, [&] { return bytes_of(1.5F, -2.0F); }},
                                   {"f64", DType::f64, {2}, [&] { return bytes_of(1.5, -2.0); }},
                                   {"bf16", DType::bf16, {2}, [&] { return bytes_of(Half{0x3fc0}, Half{0xc000}); }},
                                   {"f16", DType::f16, {2}, [&] { return bytes_of(Half{0x3e00}, Half{0xc000}); }}});
    const exec::CheckpointWeights source(read_back(path), model::ModelSpec{});
    for (const char* name : {"f32", "f64", "bf16", "f16"}) {
        model::Parameter parameter;
        parameter.name = name;
        parameter.shape = parameter.stored_shape = {2};
        CHECK(fill(source, parameter, -1) == std::vector<float>{1.5F, -2.0F});
        std::uint16_t rounded[2];
        source.fill(parameter, -1, exec::whole_ranges({2}), {reinterpret_cast<std::byte*>(rounded), DType::bf16, {2}});
        CHECK(rounded[0] == 0x3fc0);
        CHECK(rounded[1] == 0xc000);
    }
}

TEST_CASE("what was saved is read back, fused tensors included, with and without the optional prefix") {
    for (const char* family : {"llama", "gpt2", "falcon", "gemma2", "bloom", "granitemoe", "gpt_oss", "dbrx", "llama4",
                               "deepseek_v3 with biases"}) {
        CAPTURE(family);
        const test::TemporaryDirectory directory;
        const model::Graph graph = model::build_graph(test::tiny_model(family), {});
        const exec::SeededWeights seeded(11, graph.model);
        exec::save_weights(directory / "new", graph, DType::f32, seeded);
        tensor::Checkpoint checkpoint = read_back(directory / "new");
        const std::string& prefix = graph.model.names.optional_prefix;
        for (const bool strip : {false, true}) {
            if (strip) {
                tensor::Checkpoint stripped;
                for (const auto& [name, entry] : checkpoint) {
                    stripped[name.starts_with(prefix) ? name.substr(prefix.size()) : name] = entry;
                }
                checkpoint = stripped;
            }
            CHECK(exec::check_checkpoint(graph, checkpoint).empty());
            const exec::CheckpointWeights source(checkpoint, graph.model);
            for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
                for (const int layer : model::layers_of(graph, static_cast<int>(p))) {
                    CHECK(fill(source, graph.parameters[p], layer) == fill(seeded, graph.parameters[p], layer));
                }
            }
        }
    }
}

TEST_CASE("a decoder's tensors are found under the names that checkpoints of more than text give them") {
    const std::string prefix = "language_model.";
    for (const char* stored :
         {"language_model.model.norm.weight", "model.norm.weight", "model.language_model.norm.weight"}) {
        CAPTURE(stored);
        const tensor::Checkpoint checkpoint = {{stored, {}}};
        CHECK(exec::find_tensor(checkpoint, "language_model.model.norm.weight", prefix) != checkpoint.end());
    }
    const tensor::Checkpoint other = {{"model.vision.norm.weight", {}}};
    CHECK(exec::find_tensor(other, "language_model.model.norm.weight", prefix) == other.end());
}

TEST_CASE("missing, extra, misshapen and unreadable tensors are named") {
    const test::TemporaryDirectory directory;
    const model::Graph graph = model::build_graph(test::tiny_llama(), {});
    exec::save_weights(directory.path(), graph, DType::f32, exec::SeededWeights(1, graph.model));
    tensor::Checkpoint checkpoint = read_back(directory.path());
    checkpoint.erase("model.norm.weight");
    checkpoint["lm_head.weight"].shape = {1, 2};
    checkpoint["model.layers.1.mlp.up_proj.weight"].dtype = DType::i8;
    checkpoint["surprise"] = checkpoint["lm_head.weight"];
    checkpoint["model.layers.0.self_attn.rotary_emb.inv_freq"] = checkpoint["lm_head.weight"];  // ignored
    const auto problems = exec::check_checkpoint(graph, checkpoint);
    REQUIRE(problems.size() == 4);
    const char* expected[] = {"model.norm.weight of shape [32] is missing",
                              "lm_head.weight has shape [1, 2], the model needs [64, 32]",
                              "model.layers.1.mlp.up_proj.weight has dtype i8", "surprise of shape [1, 2] is not part"};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(problems[i].code == "SP7001");
        CHECK(problems[i].severity == diag::Severity::error);
        CHECK_MESSAGE(problems[i].message.find(expected[i]) != std::string::npos, problems[i].message);
    }
}

TEST_CASE("very many problems of one kind are counted, not listed") {
    const model::Graph graph = model::build_graph(test::tiny_llama(), {});
    tensor::Checkpoint checkpoint;
    for (int i = 0; i < 50; ++i) {
        checkpoint[fmt::format("extra.{}", i)] = {};
    }
    const auto problems = exec::check_checkpoint(graph, checkpoint);
    CHECK(problems.back().message == "30 more tensors are not part of the model");
    CHECK(problems.size() < 45);
}

TEST_CASE("a file that ends too early or is not there is named") {
    const test::TemporaryDirectory directory;
    const std::string path = directory / "a.safetensors";
    exec::write_safetensors(path, {{"x", DType::f32, {4}, [] { return std::vector<std::byte>(16); }}});
    tensor::Checkpoint checkpoint = read_back(path);
    checkpoint["x"].shape = {400};
    model::Parameter parameter;
    parameter.name = "x";
    parameter.shape = parameter.stored_shape = {400};
    {
        const exec::CheckpointWeights source(checkpoint, model::ModelSpec{});
        CHECK_THROWS_WITH_AS(fill(source, parameter, -1), doctest::Contains("the file ends before"),
                             std::runtime_error);
        parameter.name = "y";
        CHECK_THROWS_WITH_AS(fill(source, parameter, -1), doctest::Contains("no tensor y"), std::runtime_error);
    }
    checkpoint["x"].file = directory / "none";
    CHECK_THROWS_AS(exec::CheckpointWeights(checkpoint, model::ModelSpec{}), std::runtime_error);
}
