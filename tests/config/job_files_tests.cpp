// Jobs and models in files of their own: the shipped configs, and where problems of a model's file are shown.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/job_reader.h"
#include "config/model_file.h"

using namespace shardplan;
namespace fs = std::filesystem;

namespace {

struct TemporaryDirectory {
    fs::path path = fs::temp_directory_path() / "shardplan_job_files_tests";
    TemporaryDirectory() {
        fs::remove_all(path);
        fs::create_directories(path / "models");
    }
    ~TemporaryDirectory() { fs::remove_all(path); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
};

std::vector<diag::Diagnostic> problems_of(const std::string& path) {
    diag::Diagnostics diagnostics;
    const auto source = config::open_job(path, diagnostics);
    if (source) {
        CHECK_FALSE(config::read_job(*source, {}, diagnostics));
    }
    return diagnostics.all();
}

}  // namespace

TEST_CASE("every shipped config can be read") {
    int jobs = 0;
    for (const auto& entry : fs::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs")) {
        if (entry.path().extension() != ".json" ||
            entry.path().filename().string().find("schema") != std::string::npos) {
            continue;
        }
        CAPTURE(entry.path().string());
        diag::Diagnostics diagnostics;
        const auto source = config::open_job(entry.path().string(), diagnostics);
        REQUIRE(source);
        const auto job = config::read_job(*source, {}, diagnostics);
        for (const diag::Diagnostic& d : diagnostics.all()) {
            CAPTURE(d.message);
            CHECK(d.severity != diag::Severity::error);
        }
        REQUIRE(job);
        CHECK(job->name == entry.path().stem().string());
        ++jobs;
    }
    CHECK(jobs >= 7);
    for (const auto& entry : fs::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/models")) {
        diag::Diagnostics diagnostics;
        CHECK(config::read_model_config(entry.path().string(), diagnostics));
    }
}

TEST_CASE("problems of a model's file are shown in that file") {
    const TemporaryDirectory directory;
    directory.write("job.json", "{\"model\": \"models/m.json\",\n \"mesh\": {\"axes\": {\"tp\": 0}}}");
    directory.write("models/m.json", "{\"model_type\": \"llama\",\n \"hidden_size\": true}");
    const auto problems = problems_of((directory.path / "job.json").string());
    bool in_model = false;
    bool in_job = false;
    for (const diag::Diagnostic& d : problems) {
        REQUIRE(d.span);
        in_model = in_model || (d.span->file.ends_with("models/m.json") && d.span->line == 2 && d.span->column == 17);
        in_job = in_job || (d.span->file.ends_with("job.json") && d.code == "SP3001" && d.span->line == 2);
    }
    CHECK(in_model);
    CHECK(in_job);

    directory.write("models/m.json", "{\"model_type\": }");
    CHECK(problems_of((directory.path / "job.json").string()).front().span->file.ends_with("models/m.json"));
    directory.write("models/m.json", "[1]");
    CHECK(problems_of((directory.path / "job.json").string()).front().message.find("must be an object") !=
          std::string::npos);
}

TEST_CASE("missing files are reported where they are named") {
    const TemporaryDirectory directory;
    directory.write("job.json", "{\"model\": \"models/none.json\", \"mesh\": {\"axes\": {\"tp\": 1}}}");
    const auto problems = problems_of((directory.path / "job.json").string());
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].code == "SP1001");
    CHECK(problems[0].span->column == 11);
    CHECK(problems_of((directory.path / "none.json").string()).front().code == "SP1001");
    directory.write("job.json", "{\"model\": \"models\", \"mesh\": {\"axes\": {\"tp\": 1}}}");
    CHECK(problems_of((directory.path / "job.json").string()).front().message.find("config.json") != std::string::npos);
}

TEST_CASE("a directory stands for its config.json, and names the job") {
    const std::string golden = SHARDPLAN_SOURCE_DIR "/tests/data/logits/gemma2";
    diag::Diagnostics diagnostics;
    const auto source = config::open_job(golden, diagnostics);
    REQUIRE(source);
    config::Overrides overrides;
    overrides.mesh = "tp=2";
    std::vector<config::Document> documents;
    const auto job = config::read_job(*source, overrides, diagnostics, &documents);
    REQUIRE(job);
    CHECK(job->name == "gemma2");
    CHECK(job->workload.dtype == tensor::DType::f32);
    CHECK(documents.size() == 1);

    const TemporaryDirectory directory;
    directory.write("job.json", fmt::format(R"({{"model": "{}", "mesh": {{"axes": {{"tp": 1}}}}}})", golden));
    const auto by_path = config::open_job((directory.path / "job.json").string(), diagnostics);
    REQUIRE(by_path);
    documents.clear();
    CHECK(config::read_job(*by_path, {}, diagnostics, &documents));
    REQUIRE(documents.size() == 2);
    CHECK(documents[1].sources.front().name.ends_with("gemma2/config.json"));
}

TEST_CASE("damaged model configs have one clear error each") {
    struct Row {
        std::string key;
        std::string value;
        bool accepted;
    };
    const std::vector<Row> rows = {
        {"hidden_size", "64.0", true},
        {"hidden_size", "64.5", false},
        {"hidden_size", "\"64\"", false},
        {"num_attention_heads", "true", false},
        {"num_attention_heads", "0", false},
        {"num_hidden_layers", "-2", false},
        {"hidden_size", "4611686018427387904", false},
        {"hidden_size", "99999999999999999999999", false},
        {"num_key_value_heads", "3", false},
        {"hidden_size", "66", false},
        {"torch_dtype", "\"float7\"", false},
        {"torch_dtype", "\"torch.bfloat16\"", true},
        {"tie_word_embeddings", "\"false\"", false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.key);
        CAPTURE(row.value);
        std::string text = "{\"model_type\": \"llama\"";
        const std::vector<std::pair<std::string, std::string>> members = {
            {"hidden_size", "64"},           {"num_attention_heads", "4"},    {"num_key_value_heads", "2"},
            {"intermediate_size", "128"},    {"num_hidden_layers", "2"},      {"vocab_size", "256"},
            {"torch_dtype", "\"bfloat16\""}, {"tie_word_embeddings", "false"}};
        for (const auto& [key, value] : members) {
            text += fmt::format(",\n\"{}\": {}", key, key == row.key ? row.value : value);
        }
        diag::Diagnostics diagnostics;
        const auto document = config::parse_document(text + "}", "config.json", diagnostics);
        REQUIRE(document);
        CHECK(config::read_model_config(*document, diagnostics).has_value() == row.accepted);
        CHECK(diagnostics.has_errors() != row.accepted);
    }
}
