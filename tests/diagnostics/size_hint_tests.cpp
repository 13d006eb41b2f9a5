// The values that hints offer: they must work, and nothing that works may be missing.
#include <doctest/doctest.h>

#include "diagnostics/checked_job.h"
#include "plan/checks/size_hints.h"

using namespace diagnostics_tests;

namespace {

plan::Job job_with(std::int64_t heads, std::int64_t kv_heads, std::int64_t width, std::int64_t tp) {
    plan::Job job;
    job.model.hidden = 840;
    job.model.layers.resize(2);
    job.model.vocab = 840;
    job.model.attention.heads = heads;
    job.model.attention.kv_heads = kv_heads;
    job.model.attention.head_dim = 64;
    job.model.mlp.intermediate = width;
    job.mesh = mesh::Mesh({{"tp", tp}});
    return job;
}

}  // namespace

TEST_CASE("working sizes suit heads, key/value heads, width and hidden size at once") {
    for (const std::int64_t heads : {12, 28, 40, 60}) {
        for (const std::int64_t kv_heads : {1, 2, 4}) {
            for (const std::int64_t width : {96, 120, 840}) {
                const plan::Job job = job_with(heads, kv_heads, width, 7);
                std::vector<std::int64_t> expected;
                for (std::int64_t n = 1; n <= heads; ++n) {
                    const bool shared = kv_heads % n == 0 || n % kv_heads == 0;
                    if (heads % n == 0 && shared && width % n == 0 && 840 % n == 0) {
                        expected.push_back(n);
                    }
                }
                CAPTURE(heads);
                CAPTURE(kv_heads);
                CAPTURE(width);
                CHECK(plan::working_sizes(job, {"tp"}, heads) == expected);
            }
        }
    }
}

TEST_CASE("other axes of the same dimension count") {
    plan::Job job = job_with(24, 24, 840, 5);
    job.mesh = mesh::Mesh({{"tp", 5}, {"x", 4}});
    job.partition_axis.set("head_axis", {"tp", "x"}, "/partition_axis/head_axis");
    job.partition_axis.set("hidden_state_axis", {}, "/partition_axis/hidden_state_axis");
    // tp * 4 must divide 24 and 840
    CHECK(plan::working_sizes(job, {"tp"}, 24) == std::vector<std::int64_t>{1, 2, 3, 6});
}

TEST_CASE("padded vocabularies of Megatron") {
    struct Row {
        std::int64_t vocab;
        std::int64_t parts;
        std::int64_t padded;
    };
    for (const Row& row : {Row{50257, 1, 50304}, Row{50257, 8, 51200}, Row{32000, 3, 32256}, Row{151936, 2, 152064},
                           Row{128256, 8, 129024}, Row{65535, 4, 65536}, Row{1, 1, 128}}) {
        CHECK(plan::padded_vocabulary(row.vocab, row.parts) == row.padded);
    }
}

TEST_CASE("device_memory takes bytes and units") {
    const std::string job = R"({"model": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 192,
        "num_attention_heads": 8, "num_hidden_layers": 1, "vocab_size": 256}, "mesh": {"axes": {"tp": 1}},
        "device_memory": )";
    const std::pair<const char*, std::int64_t> good[] = {
        {"85899345920", 85899345920},       {"\"80GB\"", 80'000'000'000},    {"\"80GiB\"", 85899345920},
        {"\"79.5GiB\"", 85362475008},       {"\"1.5 TB\"", 1500000000000},   {"\"16777216B\"", 16777216},
        {"\"65536KiB\"", 64 * 1024 * 1024}, {"\"64MiB\"", 64 * 1024 * 1024}, {"\"64 MB\"", 64'000'000},
    };
    for (const auto& [text, bytes] : good) {
        CAPTURE(text);
        const CheckedJob result = check_text(job + text + "}", "job.json");
        REQUIRE(result.job);
        CHECK(result.job->device_memory == bytes);
    }
    for (const char* text :
         {"0", "-1", "true", "1.5", "\"\"", "\"GB\"", "\"80\"", "\"80gb\"", "\"80 G B\"", "\"-1GB\"", "\"nanGB\"",
          "\"1e3GB\"", "\"0.1B\"", "\"99999999TiB\"", "null", "[]", "[80, 80]", "[true]"}) {
        CAPTURE(text);
        CHECK_FALSE(check_text(job + text + "}", "job.json").job);
    }
}
