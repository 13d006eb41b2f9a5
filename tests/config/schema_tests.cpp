// The shipped schema is the one that the program prints, and it agrees with the reader on the shape of jobs: what one
// refuses, the other refuses.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "config/job_fields.h"
#include "config/job_reader.h"
#include "config/job_schema.h"

using namespace shardplan;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class Checker {
public:
    Checker() : document_(json::parse(config::job_schema())) {
        const valijson::adapters::NlohmannJsonAdapter adapter(document_);
        valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
    }
    bool accepts(const json& job) const {
        valijson::Validator validator;
        const valijson::adapters::NlohmannJsonAdapter adapter(job);
        return validator.validate(schema_, adapter, nullptr);
    }

private:
    json document_;
    valijson::Schema schema_;
};

const Checker& checker() {
    static const Checker instance;
    return instance;
}

bool reader_accepts(const std::string& text, diag::Diagnostics& diagnostics) {
    return config::read_job({"job.json", text, ""}, {}, diagnostics).has_value();
}

const json model = {{"model_type", "llama"},        {"hidden_size", 64},        {"num_hidden_layers", 2},
                    {"num_attention_heads", 4},     {"intermediate_size", 128}, {"vocab_size", 256},
                    {"tie_word_embeddings", false}, {"torch_dtype", "bfloat16"}};

/// A job with `text` in place of the value at `pointer`.
json job_with(const std::string& pointer, const std::string& text) {
    json job = {{"model", model}, {"mesh", {{"axes", {{"dp", 1}, {"tp", 2}}}}}};
    if (!pointer.empty()) {
        job[json::json_pointer(pointer)] = json::parse(text);
    }
    return job;
}

struct Row {
    std::string pointer, value;
};

const std::vector<Row> good = {
    {"", ""},
    {"/$schema", "\"x\""},
    {"/$comment", "[1]"},
    {"/mesh/$comment", "null"},
    {"/mesh/axes/$comment", "\"text\""},
    {"/device_memory", R"(["80GB", 40000000000])"},
    {"/mesh/devices", "2"},
    {"/mesh/axes", R"({"a": 1099511627776})"},
    {"/partition_axis", "{}"},
    {"/partition_axis/head_axis", "null"},
    {"/partition_axis/head_axis", "\"tp\""},
    {"/partition_axis/head_axis", R"(["tp", "dp"])"},
    {"/partition_axis/head_axis", "[]"},
    {"/partition_axis/generation_head_axis", "null"},
    {"/partition_rules", "\"derived\""},
    {"/partition_rules", "\"seed-0.0.80\""},
    {"/partition_rules", "[]"},
    {"/partition_rules", R"([["a", []], [".*", [null, "tp", ["dp", "tp"]]]])"},
    {"/backend", "\"auto\""},
    {"/backend", "\"transformer_engine\""},
    {"/backend", "{}"},
    {"/backend", R"({"provider": "inference"})"},
    {"/workload", "{}"},
    {"/workload", R"({"mode": "decode", "batch_size": 4, "sequence_length": 9, "cache_length": 0, "dtype": "bf16"})"},
    {"/workload", R"({"mode": "insert", "batch_size": 4, "sequence_length": 9, "insert_length": 8})"},
    {"/workload/dtype", "\"torch.float32\""},
    {"/options", R"({"indivisible": "drop", "kv_heads": "split", "compat": "seed"})"},
    {"/options", R"({"indivisible": "pad", "padded_vocab_size": 512})"},
    {"/options", R"({"cp_comm_type": "all_gather", "context_parallel_load_balance": false})"},
    {"/options/compat", "\"current\""},
};

const std::vector<Row> bad = {
    {"/model", "7"},
    {"/model", "null"},
    {"/model", "\"\""},
    {"/mesh", "[]"},
    {"/mesh", "{}"},
    {"/mesh/axes", "[2, 4]"},
    {"/mesh/axes/tp", "0"},
    {"/mesh/axes/tp", "-2"},
    {"/mesh/axes/tp", "\"2\""},
    {"/mesh/axes/tp", "true"},
    {"/mesh/axes/tp", "2.5"},
    {"/mesh/axes/tp", "1099511627777"},
    {"/mesh/axes", "{\"" + std::string(129, 'a') + "\": 1}"},
    {"/mesh/devices", "0"},
    {"/mesh/devices", "null"},
    {"/mesh/shape", "[1]"},
    {"/msh", "{}"},
    {"/partition_axis", "[]"},
    {"/partition_axis/head_axes", "\"tp\""},
    {"/partition_axis/tensor_parallel_axis", "\"tp\""},
    {"/partition_axis/head_axis", "1"},
    {"/partition_axis/head_axis", "\"\""},
    {"/partition_axis/head_axis", "[[\"tp\"]]"},
    {"/partition_axis/head_axis", "[null]"},
    {"/partition_rules", "\"none\""},
    {"/partition_rules", "{}"},
    {"/partition_rules", "[\"a\"]"},
    {"/partition_rules", "[[\"a\"]]"},
    {"/partition_rules", R"([["a", [], 1]])"},
    {"/partition_rules", R"([["a", "tp"]])"},
    {"/partition_rules", R"([["a", [7]]])"},
    {"/backend", "\"fast\""},
    {"/backend", "null"},
    {"/backend/provider", "7"},
    {"/backend/name", "\"auto\""},
    {"/workload", "null"},
    {"/workload/mode", "\"training\""},
    {"/workload/batch_size", "0"},
    {"/workload/batch_size", "-1"},
    {"/workload/batch_size", "\"8\""},
    {"/workload/sequence_length", "1099511627777"},
    {"/workload/cache_length", "-1"},
    {"/workload/dtype", "\"f16\""},
    {"/workload/dtype", "7"},
    {"/workload/seq_length", "1"},
    {"/options/indivisible", "\"wrap\""},
    {"/options/kv_heads", "\"cut\""},
    {"/options/cp_comm_type", "\"ring\""},
    {"/options/context_parallel_load_balance", "1"},
    {"/options/compat", "\"new\""},
    {"/options/strict", "true"},
};

}  // namespace

TEST_CASE("the shipped schema is what the program prints") {
    CHECK(text_of(SHARDPLAN_SOURCE_DIR "/configs/shardplan.schema.json") == config::job_schema());
}

TEST_CASE("the schema accepts every shipped job, and each names it") {
    int jobs = 0;
    for (const auto& entry : fs::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs")) {
        if (entry.path().extension() == ".json" && entry.path().filename() != "shardplan.schema.json") {
            CAPTURE(entry.path().string());
            const json job = json::parse(text_of(entry.path()));
            CHECK(checker().accepts(job));
            CHECK(job.at("$schema") == "./shardplan.schema.json");
            ++jobs;
        }
    }
    CHECK(jobs >= 7);
}

TEST_CASE("schema and reader agree on shape") {
    for (const Row& row : good) {
        CAPTURE(row.pointer);
        CAPTURE(row.value);
        const json job = job_with(row.pointer, row.value);
        CHECK(checker().accepts(job));
        diag::Diagnostics diagnostics;
        CHECK(reader_accepts(job.dump(), diagnostics));
    }
    for (const Row& row : bad) {
        CAPTURE(row.pointer);
        CAPTURE(row.value);
        const json job = job_with(row.pointer, row.value);
        CHECK_FALSE(checker().accepts(job));
        diag::Diagnostics diagnostics;
        CHECK_FALSE(reader_accepts(job.dump(), diagnostics));
    }
}

TEST_CASE("required keys and the dialect of partition_axis") {
    json job = job_with("", "");
    job.erase("mesh");
    CHECK_FALSE(checker().accepts(job));
    job = job_with("", "");
    job.erase("model");
    CHECK_FALSE(checker().accepts(job));

    job = job_with("/options/compat", "\"current\"");
    job["partition_axis"]["decode_head_axis"] = "tp";
    diag::Diagnostics diagnostics;
    CHECK(checker().accepts(job));
    CHECK(reader_accepts(job.dump(), diagnostics));
    job["partition_axis"]["generation_head_axis"] = "tp";
    CHECK_FALSE(checker().accepts(job));
    CHECK_FALSE(reader_accepts(job.dump(), diagnostics));
}

TEST_CASE("every property has a description, and defaults and examples are accepted") {
    const json schema = json::parse(config::job_schema());
    const auto described = [](const json& object) {
        for (const auto& [name, property] : object.at("properties").items()) {
            CAPTURE(name);
            CHECK_FALSE(property.value("description", "").empty());
        }
    };
    described(schema);
    for (const char* section : {"mesh", "workload", "options"}) {
        described(schema.at("properties").at(section));
    }
    described(schema.at("definitions").at("seed_partition_axis"));
    described(schema.at("definitions").at("current_partition_axis"));
    for (const auto& [section, property] : schema.at("properties").items()) {
        std::vector<json> values = property.value("examples", std::vector<json>{});
        if (property.contains("default")) {
            values.push_back(property.at("default"));
        }
        for (const json& value : values) {
            CAPTURE(value.dump());
            CHECK(checker().accepts(job_with("/" + section, value.dump())));
        }
    }
}

TEST_CASE("the names of the tables are what the parsers of other rooms read") {
    for (const auto& [name, provider] : config::names::providers) {
        CHECK(backend::parse_provider(name) == provider);
    }
    for (const auto& [name, dtype] : config::names::dtypes) {
        CHECK(tensor::parse_dtype(name) == dtype);
    }
}
