// Problems that users of other systems reported (tests/data/reports.jsonl, areas validate and plan), each with our
// answer in reports.tsv:
//   how     auto = the report's own model and mesh; a job as JSON; later = the feature does not exist yet;
//           elsewhere = another test file answers it
//   answer  auto and jobs: expectations joined by " ; ". later: the reason. elsewhere: the file.
// Expectations: error CODE text | hint text | warning CODE text | plan | local NAME [..] | shape NAME [..] |
// replicas NAME n | bytes NAME n | stages n,n,.. (layers of each) | copies NAME n (stages that hold it) | caches n
// (bytes of all devices without copies) | caches_per_device n | parameters n
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "diag/codes.h"
#include "diagnostics/checked_job.h"
#include "plan/pipeline.h"

using namespace diagnostics_tests;
using Json = nlohmann::ordered_json;

namespace {

/// The report's facts as a job: absent facts get sizes that its mesh divides, so that only what is told fails.
std::string job_of(const Json& input) {
    std::int64_t devices = 1;
    for (const auto& [name, size] : input.at("mesh").at("axes").items()) {
        devices *= size.get<std::int64_t>();
    }
    Json model = input.value("model", Json::object());
    const auto fill = [&](const char* key, const Json& value) {
        if (!model.contains(key)) {
            model[key] = value;
        }
    };
    fill("model_type", "llama");
    fill("num_attention_heads", 4 * devices);
    fill("head_dim", 64);
    fill("hidden_size", 256 * devices);
    fill("intermediate_size", 512 * devices);
    fill("vocab_size", 128 * devices);
    fill("num_hidden_layers", 2);
    fill("torch_dtype", "bfloat16");
    Json job;
    job["model"] = model;
    job["mesh"] = input.at("mesh");
    job["workload"] = {{"batch_size", input.value("batch", 1)}, {"sequence_length", input.value("sequence", 48)}};
    if (input.contains("sequence")) {
        job["workload"]["cache_length"] = input["sequence"];
    }
    if (input.contains("kv_dtype")) {
        job["workload"]["dtype"] = input["kv_dtype"];
    }
    return job.dump();
}

const plan::StoredTensor* find_stored(const plan::Plan& plan, const std::string& name) {
    for (const plan::StoredTensor& stored : plan.stored) {
        if (stored.name == name) {
            return &stored;
        }
    }
    return nullptr;
}

std::int64_t cache_bytes(const plan::Plan& plan, bool per_device) {
    std::int64_t bytes = 0;
    for (const plan::StoredTensor& stored : plan.stored) {
        if (stored.kind == plan::StoredKind::cache) {
            bytes +=
                (per_device ? stored.bytes_per_device : stored.bytes) * static_cast<std::int64_t>(stored.layers.size());
        }
    }
    return bytes;
}

std::string value_of(const plan::Plan& plan, const std::string& kind, const std::string& name) {
    if (kind == "caches" || kind == "caches_per_device") {
        return std::to_string(cache_bytes(plan, kind != "caches"));
    }
    if (kind == "parameters") {
        return std::to_string(plan.totals.parameters);
    }
    if (kind == "stages") {
        std::vector<int> layers;
        for (const plan::Stage& stage : plan.stages) {
            layers.push_back(stage.end_layer - stage.first_layer);
        }
        return fmt::format("{}", fmt::join(layers, ","));
    }
    const plan::StoredTensor* stored = find_stored(plan, name);
    if (stored == nullptr) {
        return "no tensor " + name;
    }
    if (kind == "replicas") {
        return std::to_string(stored->replicas);
    }
    if (kind == "bytes") {
        return std::to_string(stored->bytes);
    }
    if (kind == "copies") {
        const auto index = static_cast<int>(stored - plan.stored.data());
        return std::to_string(std::count_if(plan.stages.begin(), plan.stages.end(), [&](const plan::Stage& stage) {
            return plan::StageTensors(plan, stage).holds(index, stored->layers.front());
        }));
    }
    return fmt::format("[{}]", fmt::join(kind == "local" ? stored->local_shape : stored->shape, ","));
}

bool reported(const diag::Diagnostics& diagnostics, const std::string& kind, const std::string& code,
              const std::string& text) {
    for (const diag::Diagnostic& d : diagnostics.all()) {
        if (kind == "hint"
                ? d.hint.find(text) != std::string::npos
                : to_string(d.severity) == kind && d.code == code && d.message.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

void check_expectation(const CheckedJob& result, const std::string& expectation) {
    CAPTURE(expectation);
    const std::size_t blank = expectation.find(' ');
    const std::string kind = expectation.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : expectation.substr(blank + 1);
    if (kind == "plan") {
        CHECK(result.planned);
    } else if (kind == "hint") {
        CHECK(reported(result.checked, kind, "", rest));
    } else if (kind == "error" || kind == "warning") {
        CHECK(reported(result.checked, kind, rest.substr(0, 6), rest.size() > 7 ? rest.substr(7) : ""));
        CHECK(result.planned.has_value() == (kind == "warning"));
    } else {
        REQUIRE(result.planned);
        const std::vector<std::string> words = split(rest, " ");
        const std::string name = words.size() > 1 ? words.front() : "";
        CHECK(value_of(*result.planned, kind, name) == words.back());
    }
}

std::map<std::string, Json> reports() {
    std::map<std::string, Json> result;
    std::istringstream lines(read_text(source_dir + "/tests/data/reports.jsonl"));
    for (std::string line; std::getline(lines, line);) {
        const Json report = Json::parse(line);
        if (report["area"] == "validate" || report["area"] == "plan") {
            result.emplace(report["id"].get<std::string>(), report);
        }
    }
    return result;
}

}  // namespace

TEST_CASE("every report about validating and planning has its answer") {
    const std::map<std::string, Json> all = reports();
    std::set<std::string> answered;
    for (const auto& row : read_table("reports.tsv", 3)) {
        CAPTURE(row[0]);
        REQUIRE(all.contains(row[0]));
        CAPTURE(all.at(row[0])["what"].get<std::string>());
        answered.insert(row[0]);
        if (row[1] == "later") {
            CHECK(row[2].size() > 10);
            continue;
        }
        if (row[1] == "elsewhere") {
            CHECK_FALSE(read_text(source_dir + "/" + row[2]).empty());
            continue;
        }
        const CheckedJob result = check_text(row[1] == "auto" ? job_of(all.at(row[0])["input"]) : row[1], "job.json");
        INFO(text_of(result.checked));
        for (const std::string& expectation : split(row[2], " ; ")) {
            check_expectation(result, expectation);
        }
    }
    for (const auto& [id, report] : all) {
        CHECK_MESSAGE(answered.contains(id), id);
    }
}
