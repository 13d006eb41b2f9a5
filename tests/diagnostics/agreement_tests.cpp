// check_job refuses exactly what make_plan refuses, with the same errors and warnings.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "diagnostics/checked_job.h"
#include "plan/random_jobs.h"

using namespace diagnostics_tests;

namespace {

/// Errors and warnings; notes on defaults are check_job's own, the plan lists them itself.
std::multiset<std::string> findings(const diag::Diagnostics& diagnostics) {
    std::multiset<std::string> result;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        if (d.code != "SP2004") {
            result.insert(d.code + " " + d.pointer + " " + d.message + " " + d.hint);
        }
    }
    return result;
}

/// True when there is a plan.
bool check_agreement(const CheckedJob& result) {
    INFO(text_of(result.checked));
    INFO(text_of(result.planning));
    CHECK(result.planned.has_value() == !result.checked.has_errors());
    CHECK(findings(result.checked) == findings(result.planning));
    for (const diag::Diagnostic& d : result.planning.all()) {
        // No job is known that meets every check and has no placement.
        CHECK(d.code != "SP6001");
    }
    return result.planned.has_value();
}

bool check_agreement(const std::string& text) {
    CAPTURE(text);
    return check_agreement(check_text(text, "job.json"));
}

std::vector<std::string> json_files(const std::string& directory) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir + "/" + directory)) {
        if (entry.path().extension() == ".json") {
            files.push_back(entry.path().string());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

TEST_CASE("validate and plan agree on random jobs") {
    int planned = 0;
    for (const std::int64_t devices : {1, 2, 6, 8, 12}) {
        test::RandomJobs jobs(2026, devices);
        for (int i = 0; i < 60; ++i) {
            const std::string text = jobs.next();
            planned += check_agreement(text) ? 1 : 0;
        }
    }
    CHECK(planned > 60);
}

TEST_CASE("validate and plan agree on a memory budget at its edge") {
    const std::string job = R"({"model": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 192,
        "num_attention_heads": 8, "num_hidden_layers": 2, "vocab_size": 256, "torch_dtype": "float32"},
        "mesh": {"axes": {"dp": 2, "tp": 2}}, "partition_axis": {"hidden_state_axis": null},
        "workload": {"batch_size": 4, "sequence_length": 64})";
    const CheckedJob free = check_text(job + "}", "job.json");
    REQUIRE(free.planned);
    const std::int64_t needed = free.planned->memory.total();
    for (const std::int64_t budget : {needed + 1, needed, needed - 1, needed / 2, std::int64_t{1}}) {
        CAPTURE(budget);
        const std::string text = job + ", \"device_memory\": " + std::to_string(budget) + "}";
        check_agreement(text);
        CHECK(check_text(text, "job.json").planned.has_value() == (budget >= needed));
    }
}

TEST_CASE("validate and plan agree where byte counts come near 2^63") {
    for (const int bits : {20, 30, 36, 38, 39, 40}) {
        const std::string size = std::to_string(std::int64_t{1} << bits);
        check_agreement(R"({"model": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 4096,
            "num_attention_heads": 32, "num_hidden_layers": 2, "vocab_size": 4096},
            "mesh": {"axes": {"dp": 1024, "tp": 2}}, "workload": {"batch_size": )" +
                        size + "}}");
        check_agreement(R"({"model": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": )" + size +
                        R"(, "num_attention_heads": 32, "num_hidden_layers": 2, "vocab_size": 4096},
            "mesh": {"axes": {"tp": 2}}, "workload": {"mode": "decode", "batch_size": 64}})");
    }
}

TEST_CASE("validate and plan agree on every case and every shipped job") {
    int planned = 0;
    for (const char* directory : {"tests/diagnostics/cases", "configs"}) {
        for (const std::string& file : json_files(directory)) {
            if (!file.ends_with("schema.json")) {
                CAPTURE(file);
                planned += check_agreement(check_file(file)) ? 1 : 0;
            }
        }
    }
    CHECK(planned > 20);
}

TEST_CASE("validate and plan agree on published and on broken configs over several meshes") {
    struct Variant {
        std::string mesh;
        std::vector<std::string> set;
    };
    const std::vector<Variant> variants = {
        {"dp=2,tp=4", {"workload.batch_size=2", "partition_axis.hidden_state_axis=null"}},
        {"fsdp=2,sp=2,tp=2", {"workload.batch_size=4"}},
        {"tp=16", {"workload.mode=decode", "options.kv_heads=split"}},
        {"tp=3,ep=2", {"options.indivisible=drop"}},
        {"dp=2,tp=2", {"workload.mode=decode", "workload.batch_size=2", "backend=inference"}},
        {"tp=8", {"device_memory=24GB", "workload.sequence_length=4096"}},
    };
    std::size_t turn = 0;
    int planned = 0;
    for (const char* directory : {"tests/data/configs", "tests/data/configs_bad"}) {
        for (const std::string& file : json_files(directory)) {
            for (int i = 0; i < 2; ++i) {  // every variant meets every kind of model soon enough
                const Variant& variant = variants[turn++ % variants.size()];
                CAPTURE(file);
                CAPTURE(variant.mesh);
                planned += check_agreement(check_on(file, variant.mesh, variant.set)) ? 1 : 0;
            }
        }
    }
    CHECK(planned > 30);
}
