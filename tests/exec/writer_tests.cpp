#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/safetensors.h"
#include "exec/models.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"
#include "exec/temporary.h"

using namespace shardplan;
using tensor::DType;

namespace {

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::size_t files_in(const std::string& path) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
}

}  // namespace

TEST_CASE("the bytes of a file: length, header padded to eight, data") {
    const test::TemporaryDirectory directory;
    const std::string path = directory / "x.safetensors";
    exec::write_safetensors(path,
                            {{"a\"b\\", DType::bf16, {1, 2}, [] { return std::vector<std::byte>(4, std::byte{1}); }},
                             {"scalar", DType::f32, {}, [] { return std::vector<std::byte>(4, std::byte{2}); }}});
    const std::string text = content(path);
    const std::string header =
        R"({"__metadata__":{"format":"pt"},"a\"b\\":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},)"
        R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})";
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(text[0]));
    CHECK(length % 8 == 0);
    CHECK(text.substr(8, header.size()) == header);
    CHECK(text.size() == 8 + length + 8);
    CHECK(text.substr(8 + length) == "\1\1\1\1\2\2\2\2");
    CHECK(files_in(directory.path()) == 1);
}

TEST_CASE("logits are written as they are") {
    const test::TemporaryDirectory directory;
    exec::write_logits(directory / "logits.safetensors", {{1, 2, 2}, {1.0F, 2.0F, 3.0F, 4.5F}});
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(directory / "logits.safetensors", diagnostics);
    REQUIRE(checkpoint);
    const tensor::CheckpointEntry& entry = checkpoint->at("logits");
    CHECK(entry.shape == tensor::Shape{1, 2, 2});
    CHECK(entry.dtype == DType::f32);
    float last = 0.0F;
    std::ifstream file(entry.file, std::ios::binary);
    file.seekg(entry.offset + 12);
    file.read(reinterpret_cast<char*>(&last), sizeof last);
    CHECK(last == 4.5F);
}

TEST_CASE("names of a checkpoint: fused tensors once, no tied head") {
    const test::TemporaryDirectory directory;
    const model::Graph graph = model::build_graph(test::tiny_gpt2(), {});
    exec::save_weights(directory.path(), graph, DType::bf16, exec::SeededWeights(1, graph.model));
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(directory.path(), diagnostics);
    REQUIRE(checkpoint);
    CHECK(checkpoint->at("transformer.h.1.attn.c_attn.weight").shape == tensor::Shape{32, 96});
    CHECK(checkpoint->at("transformer.h.1.attn.c_attn.bias").dtype == DType::bf16);
    CHECK_FALSE(checkpoint->contains("lm_head.weight"));
    CHECK(checkpoint->size() == 2 + 2 * 12 + 2);
}

TEST_CASE("a failure leaves nothing behind, neither new nor half") {
    const test::TemporaryDirectory directory;
    const std::string path = directory / "x.safetensors";
    const auto broken = [] { return std::vector<std::byte>(3); };
    CHECK_THROWS_AS(exec::write_safetensors(path, {{"x", DType::f32, {1}, broken}}), std::logic_error);
    CHECK(files_in(directory.path()) == 0);
    CHECK_THROWS_WITH_AS(exec::write_logits(directory / "none/x", {{1, 1, 1}, {1.0F}}), doctest::Contains("none/x"),
                         std::runtime_error);
}
