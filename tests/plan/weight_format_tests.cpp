// Which weights are kept in int8, what they occupy, and which jobs are refused.
#include "plan/weight_format.h"

#include <doctest/doctest.h>

#include <sstream>

#include "planning.h"

namespace shardplan {
namespace {

using tensor::DType;

constexpr const char* int8 = R"({"provider": "inference", "weight_dtype": "int8"})";
constexpr const char* no_hidden = R"("hidden_state_axis": null)";
constexpr const char* decode = R"("mode": "decode", "batch_size": 4, "sequence_length": 15)";

TEST_CASE("linears are int8 with a scale for each local output, all else is as it was") {
    const plan::Plan plan =
        test::plan_of({.mesh = R"("tp": 2)", .axes = no_hidden, .workload = decode, .backend = int8});
    struct Row {
        const char* name;
        DType dtype;
        std::int64_t bytes;
        std::int64_t bytes_per_device;
    };
    const Row rows[] = {
        {"q_proj", DType::i8, 64 * 64 + 4 * 64, 32 * 64 + 4 * 32},
        {"k_proj", DType::i8, 32 * 64 + 4 * 32, 16 * 64 + 4 * 16},
        {"o_proj", DType::i8, 64 * 64 + 4 * 64, 64 * 32 + 4 * 64},  // cut along the inputs: all outputs have a scale
        {"gate_proj", DType::i8, 96 * 64 + 4 * 96, 48 * 64 + 4 * 48},
        {"down_proj", DType::i8, 64 * 96 + 4 * 64, 64 * 48 + 4 * 64},
        {"lm_head", DType::i8, 128 * 64 + 4 * 128, 64 * 64 + 4 * 64},
        {"embed_tokens", DType::f32, 4 * 128 * 64, 4 * 64 * 64},
        {"input_layernorm", DType::f32, 4 * 64, 4 * 64},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(test::stored(plan, row.name).dtype == row.dtype);
        CHECK(test::stored(plan, row.name).bytes == row.bytes);
        CHECK(test::stored(plan, row.name).bytes_per_device == row.bytes_per_device);
    }
    const std::int64_t layer = 2176 + 2 * 1088 + 2304 + 2 * 3264 + 3328 + 2 * 256;
    CHECK(plan.memory.parameters == 2 * layer + 4352 + 16384 + 256);
    std::int64_t total = 0;
    for (const plan::StoredTensor& stored : plan.stored) {
        total += stored.kind == plan::StoredKind::parameter ? stored.bytes * std::ssize(stored.layers) : 0;
    }
    CHECK(plan.totals.parameter_bytes == total);
    for (const plan::Value& value : test::block_of(plan, "layer").values) {
        if (value.kind == plan::ValueKind::parameter) {
            const plan::StoredTensor& stored = plan.stored[static_cast<std::size_t>(value.stored)];
            CHECK(value.dtype == stored.dtype);
            CHECK(value.local_bytes == stored.bytes_per_device);
        }
    }
    REQUIRE_FALSE(plan.notes.empty());
    CHECK(test::contains(plan.notes.back(), "weight_dtype int8: 8 weights"));
    CHECK_FALSE(test::contains(plan.notes.back(), "gathered"));
}

TEST_CASE("a tied head stays") {
    const plan::Plan plan =
        test::plan_of({.mesh = R"("tp": 1)", .backend = int8, .model = R"("model_type": "llama", "hidden_size": 64,
            "num_attention_heads": 8, "num_hidden_layers": 2, "num_key_value_heads": 4, "intermediate_size": 96,
            "tie_word_embeddings": true)"});
    CHECK(test::stored(plan, "embed_tokens").dtype == DType::f32);
    CHECK(test::stored(plan, "q_proj").dtype == DType::i8);
}

TEST_CASE("gathered weights stay, and the note names them") {
    const plan::Plan plan = test::plan_of(
        {.mesh = R"("fsdp": 2)", .workload = R"("batch_size": 64, "sequence_length": 512)", .backend = int8});
    const plan::StoredTensor& q = test::stored(plan, "q_proj");
    CHECK(q.dtype == DType::f32);
    CHECK(q.bytes_per_device == 4 * 64 * 32);
    CHECK(test::contains(plan.notes.back(), "weight_dtype int8: 0 weights"));
    CHECK(test::contains(plan.notes.back(), "q_proj.weight"));
    std::int64_t total = 0;
    for (const plan::StoredTensor& stored : plan.stored) {
        total += stored.kind == plan::StoredKind::parameter ? stored.bytes_per_device * std::ssize(stored.layers) : 0;
    }
    CHECK(plan.memory.parameters == total);
}

TEST_CASE("weights used in place are int8 wherever they are stored; every group is int8 as a whole or not at all") {
    for (const char* mesh : {R"("tp": 2)", R"("fsdp": 2)", R"("fsdp": 2, "tp": 2)", R"("sp": 2)", R"("pp": 2)"}) {
        for (const char* workload : {"\"batch_size\": 4, \"sequence_length\": 16", decode}) {
            CAPTURE(mesh);
            CAPTURE(workload);
            const plan::Plan plan = test::plan_of({.mesh = mesh, .workload = workload, .backend = int8});
            std::size_t in_groups = 0;
            for (const auto& [group, transposed] : plan::prepared_groups(plan)) {
                const DType dtype = plan.stored[static_cast<std::size_t>(group.front())].dtype;
                for (const int stored : group) {
                    CHECK(plan.stored[static_cast<std::size_t>(stored)].dtype == dtype);
                    in_groups += dtype == DType::i8 ? 1 : 0;
                }
            }
            CHECK(in_groups == static_cast<std::size_t>(
                                   std::count_if(plan.stored.begin(), plan.stored.end(),
                                                 [](const auto& stored) { return stored.dtype == DType::i8; })));
        }
    }
}

TEST_CASE("memory that only int8 weights fit into is enough") {
    test::JobText text{.mesh = R"("tp": 1)", .workload = decode, .backend = int8};
    const std::int64_t needed = test::plan_of(text).memory.total();
    plan::Job job = test::job_of(text);
    diag::Diagnostics diagnostics;
    job.device_memory = needed;
    CHECK(plan::make_plan(job, diagnostics));
    job.device_memory = needed - 1;
    CHECK_FALSE(plan::make_plan(job, diagnostics));
    job.device_memory = needed;
    job.int8_weights = false;
    CHECK_FALSE(plan::make_plan(job, diagnostics));
}

TEST_CASE("only inference has int8 weights: others are refused, auto takes it or says why not") {
    for (const char* provider : {"local", "fused"}) {
        const test::Planned refused =
            test::try_plan({.mesh = R"("tp": 1)",
                            .backend = fmt::format(R"({{"provider": "{}", "weight_dtype": "int8"}})", provider)});
        CHECK_FALSE(refused.plan);
        const diag::Diagnostic& found = refused.first("SP5001");
        CHECK(test::contains(found.message, fmt::format("provider '{}' cannot be used", provider)));
        CHECK(test::contains(found.message, "int8"));
        CHECK(test::contains(found.hint, "\"inference\""));
    }
    const plan::Plan taken = test::plan_of({.mesh = R"("tp": 1)", .backend = R"({"weight_dtype": "int8"})"});
    CHECK(taken.provider.kind == backend::ProviderKind::inference);
    const test::Planned none = test::try_plan({.mesh = R"("tp": 1)",
                                               .backend = R"({"weight_dtype": "int8"})",
                                               .model = R"("model_type": "gpt2", "n_embd": 64, "n_layer": 2,
                                                   "n_head": 8, "n_positions": 64)"});
    CHECK_FALSE(none.plan);
    CHECK(test::contains(none.first("SP5001").message, "inference: refused"));
    CHECK(test::contains(none.first("SP5001").hint, "weight_dtype"));
}

}  // namespace
}  // namespace shardplan
