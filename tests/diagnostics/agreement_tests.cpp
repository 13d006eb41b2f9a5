// check_job refuses exactly what make_plan refuses, with the same errors and warnings.
#include <doctest/doctest.h>

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

void check_agreement(const std::string& text) {
    CAPTURE(text);
    const CheckedJob result = check_text(text, "job.json");
    INFO(text_of(result.checked));
    INFO(text_of(result.planning));
    CHECK(result.planned.has_value() == !result.checked.has_errors());
    CHECK(findings(result.checked) == findings(result.planning));
    for (const diag::Diagnostic& d : result.planning.all()) {
        // No job is known that meets every check and has no placement.
        CHECK(d.code != "SP6001");
    }
}

}  // namespace

TEST_CASE("validate and plan agree on random jobs") {
    int planned = 0;
    for (const std::int64_t devices : {1, 2, 6, 8, 12}) {
        test::RandomJobs jobs(2026, devices);
        for (int i = 0; i < 60; ++i) {
            const std::string text = jobs.next();
            check_agreement(text);
            planned += check_text(text, "job.json").planned ? 1 : 0;
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
