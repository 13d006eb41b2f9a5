#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/safetensors.h"
#include "config/token_file.h"

using namespace shardplan;
namespace fs = std::filesystem;

namespace {

std::string length_prefix(std::uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) {
        bytes += static_cast<char>(static_cast<unsigned char>(length >> (8 * i)));
    }
    return bytes;
}

std::string file_of(std::string_view header, std::size_t data_bytes) {
    return length_prefix(header.size()) + std::string(header) + std::string(data_bytes, 'x');
}

struct TemporaryDirectory {
    fs::path path = fs::temp_directory_path() / "shardplan_checkpoint_tests";
    TemporaryDirectory() {
        fs::remove_all(path);
        fs::create_directories(path);
    }
    ~TemporaryDirectory() { fs::remove_all(path); }
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path / name, std::ios::binary) << bytes;
        return (path / name).string();
    }
};

/// The first message for a file with these bytes; "" when it is accepted.
std::string problem(const std::string& path) {
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(path, diagnostics);
    CHECK(checkpoint.has_value() == !diagnostics.has_errors());
    return diagnostics.has_errors() ? diagnostics.all().front().code + " " + diagnostics.all().front().message : "";
}

}  // namespace

TEST_CASE("a real checkpoint") {
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(SHARDPLAN_SOURCE_DIR "/tests/data/logits/gemma2", diagnostics);
    REQUIRE(checkpoint);
    const auto& embedding = checkpoint->at("model.embed_tokens.weight");
    CHECK(embedding.dtype == tensor::DType::f32);
    CHECK(embedding.shape == tensor::Shape{112, 48});
    std::int64_t bytes = 0;
    for (const auto& [name, entry] : *checkpoint) {
        bytes += tensor::byte_count(entry.shape, entry.dtype);
    }
    CHECK(bytes == 56496 * 4);
    CHECK(embedding.offset == static_cast<std::int64_t>(fs::file_size(embedding.file)) - bytes);
}

TEST_CASE("what is written is read back") {
    const TemporaryDirectory directory;
    const std::vector<config::HeaderEntry> entries = {{"b", tensor::DType::bf16, {2, 3}},
                                                      {"a \"quoted\"", tensor::DType::f32, {}},
                                                      {"empty", tensor::DType::f32, {0, 5}}};
    const std::string header = config::safetensors_header(entries);
    CHECK(header.size() % 8 == 0);
    diag::Diagnostics diagnostics;
    const auto checkpoint =
        config::read_checkpoint(directory.write("x.safetensors", header + std::string(16, 'x')), diagnostics);
    REQUIRE(checkpoint);
    const auto begin = static_cast<std::int64_t>(header.size());
    CHECK(checkpoint->at("b").offset == begin);
    CHECK(checkpoint->at("b").shape == tensor::Shape{2, 3});
    CHECK(checkpoint->at("a \"quoted\"").offset == begin + 12);
    CHECK(checkpoint->at("empty").offset == begin + 16);
    CHECK(problem(directory.write("none.safetensors", config::safetensors_header({}))).empty());
}

TEST_CASE("broken files are named") {
    const TemporaryDirectory directory;
    const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    struct Row {
        std::string bytes;
        std::string expected;
    };
    const auto tensor = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
        return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
    };
    const std::vector<Row> rows = {
        {file_of(good, 8), ""},
        {file_of(good + "   ", 8), ""},
        {file_of(R"({"__metadata__":{"format":"pt"}})", 0), ""},
        {"", "truncated"},
        {file_of(good, 8).substr(0, 30), "truncated: 30 bytes"},
        {file_of(good, 7), "truncated: tensor 'a' ends at byte 8 of the data, which has 7"},
        {file_of(good, 9), "1 bytes after the last tensor"},
        {length_prefix(UINT64_MAX) + "{}", "the limit is 100000000"},
        {length_prefix(100'000'001) + "{}", "the limit is 100000000"},
        {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
        {file_of("[]", 0), "does not begin with '{'"},
        {file_of("{\"a\": }", 0), "bad header: expected a value"},
        {file_of(R"({"a":{},"a":{}})", 0), "stands twice"},
        {file_of(R"({"__metadata__":{"n":1}})", 0), "__metadata__ must be an object of strings"},
        {file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "dtype, shape and data_offsets"},
        {file_of(tensor("\"F8_E4M3\"", "[8]", "[0,8]"), 8), "dtype \"F8_E4M3\" is not supported"},
        {file_of(tensor("4", "[8]", "[0,8]"), 8), "dtype 4 is not supported"},
        {file_of(tensor("\"F32\"", "[2.0]", "[0,8]"), 8), "shape must be a list of integers"},
        {file_of(tensor("\"F32\"", "[-2]", "[0,8]"), 8), "shape must be a list of integers"},
        {file_of(tensor("\"F32\"", "[2]", "[0]"), 8), "data_offsets must be [begin, end]"},
        {file_of(tensor("\"F32\"", "[2]", "[8,0]"), 8), "data_offsets must be [begin, end]"},
        {file_of(tensor("\"F32\"", "[3]", "[0,8]"), 8), "shape [3] of F32 needs 12 bytes, data_offsets span 8"},
        {file_of(tensor("\"F32\"", "[4294967296,4294967296]", "[0,8]"), 8), "does not fit in 64 bits"},
        {file_of(tensor("\"F32\"", "[2]", "[8,16]"), 16), "a hole"},
        {file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                 6),
         "they overlap"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.expected);
        const std::string found = problem(directory.write("m.safetensors", row.bytes));
        CAPTURE(found);
        CHECK(found.empty() == row.expected.empty());
        CHECK(found.find(row.expected) != std::string::npos);
        CHECK((found.empty() || found.starts_with("SP7001")));
        CHECK((found.empty() || found.find("m.safetensors") != std::string::npos));
    }
}

TEST_CASE("an index gathers its files") {
    const TemporaryDirectory directory;
    directory.write("1.safetensors", config::safetensors_header({{"a", tensor::DType::f32, {1}}}) + "xxxx");
    directory.write("2.safetensors", config::safetensors_header({{"b", tensor::DType::u8, {2}}}) + "xx");
    const auto index = [&](std::string_view map) {
        return directory.write("model.safetensors.index.json", fmt::format(R"({{"weight_map": {}}})", map));
    };
    index(R"({"a": "1.safetensors", "b": "2.safetensors"})");
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(directory.path.string(), diagnostics);
    REQUIRE(checkpoint);
    CHECK(checkpoint->size() == 2);
    CHECK(checkpoint->at("b").file.ends_with("2.safetensors"));

    CHECK(problem(index(R"({"a": "2.safetensors", "b": "2.safetensors"})")).find("'a' is not in 2.safetensors") !=
          std::string::npos);
    CHECK(problem(index(R"({"a": "3.safetensors"})")).find("3.safetensors") != std::string::npos);
    CHECK(problem(index(R"({"a": "../1.safetensors"})")).find("beside the index") != std::string::npos);
    CHECK(problem(index("[]")).find("weight_map") != std::string::npos);
    directory.write("2.safetensors", config::safetensors_header({{"a", tensor::DType::u8, {2}}}) + "xx");
    CHECK(problem(index(R"({"a": "1.safetensors", "b": "2.safetensors"})")).find("'a' is in ") != std::string::npos);
    fs::remove(directory.path / "model.safetensors.index.json");
    CHECK(problem(directory.path.string()).find("has neither") != std::string::npos);
}

TEST_CASE("an index decides where other weights lie beside it, which are told") {
    const TemporaryDirectory directory;
    const std::string header = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";
    directory.write("model-00001-of-00001.safetensors", file_of(header, 4));
    directory.write("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00001.safetensors"}})");
    const auto strays = [&] {
        diag::Diagnostics diagnostics;
        const auto checkpoint = config::read_checkpoint(directory.path.string(), diagnostics);
        REQUIRE(checkpoint);
        CHECK(checkpoint->at("a").file.ends_with("model-00001-of-00001.safetensors"));
        return diagnostics.all();
    };
    CHECK(strays().empty());
    directory.write("model.safetensors", file_of(header, 4));
    const auto told = strays();
    REQUIRE(told.size() == 1);
    CHECK(told[0].code == "SP7003");
    CHECK(told[0].severity == diag::Severity::warning);
    CHECK(told[0].message.ends_with("model.safetensors is not in the index, ignored"));
}

TEST_CASE("token files") {
    const TemporaryDirectory directory;
    struct Row {
        std::string text;
        std::string expected;
    };
    const std::vector<Row> rows = {
        {"[[1,2,3],[4,5,6]]", ""},
        {"[[1,2,3]]", "SP7002 1:1 1 sequences, but the batch has 2"},
        {"[[1,2,3],[4,5]]", "SP7002 1:10 a sequence has 2 tokens, needed are 3"},
        {"[[1,2,3],[4,5,7]]", "SP7002 1:15 a token id is an integer in 0 ... 6, not 7"},
        {"[[1,2,3],[4,-1,6]]", "not -1"},
        {"[[1,2,3],[4,5.0,6]]", "not 5"},
        {"[[1,2,3],[4,true,6]]", "not true"},
        {"[[1,2,3],[4,99999999999999999999,6]]", "not 99999999999999999999"},
        {"[1,2,3]", "SP7002 1:1 a token file is a list of sequences"},
        {"{}", "SP7002 1:1 a token file is a list of sequences"},
        {"[[1,2,", "SP1002 1:7"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        diag::Diagnostics diagnostics;
        const auto ids = config::read_token_file(directory.write("ids.json", row.text), {2, 3, 7}, diagnostics);
        if (row.expected.empty()) {
            REQUIRE(ids);
            CHECK(*ids == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
            continue;
        }
        CHECK_FALSE(ids);
        REQUIRE(diagnostics.all().size() == 1);
        const diag::Diagnostic& d = diagnostics.all()[0];
        REQUIRE(d.span);
        const std::string found = fmt::format("{} {}:{} {}", d.code, d.span->line, d.span->column, d.message);
        CAPTURE(found);
        CHECK(found.find(row.expected) != std::string::npos);
    }
}
