#include <doctest/doctest.h>

#include "config/safetensors.h"
#include "exec/checkpoint_weights.h"
#include "exec/models.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"
#include "exec/temporary.h"
#include "exec/verify.h"

using namespace shardplan;

namespace {

model::Workload workload_of(model::Mode mode, std::int64_t tokens, tensor::DType dtype = tensor::DType::f32) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = 2;
    workload.sequence_length = tokens;
    workload.dtype = dtype;
    return workload;
}

exec::RunOptions options_of() {
    exec::RunOptions options;
    options.seed = 5;
    options.poison = true;
    return options;
}

exec::RunReport run(const plan::Job& job, const exec::RunOptions& options) {
    const plan::Plan plan = test::plan_of(job);
    const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
    return exec::run_and_verify(plan, reference, *comm::make_self_world(), options);
}

}  // namespace

TEST_CASE("one rank: every family, mode and dtype agrees with the reference and with the plan's numbers") {
    for (const char* family :
         {"llama", "gpt2", "gemma2", "falcon", "bloom", "olmo2", "mixtral", "gpt_oss", "dbrx", "llama4"}) {
        for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
            for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::bf16}) {
                if (dtype == tensor::DType::bf16 && test::tiny_model(family).moe.experts > 0) {
                    continue;  // rounding may choose other experts
                }
                const auto report =
                    run(test::job_of(test::tiny_model(family), workload_of(mode, 9, dtype)), options_of());
                CAPTURE(family);
                CAPTURE(model::to_string(mode));
                CAPTURE(tensor::to_string(dtype));
                CAPTURE(report.comparison.max_absolute);
                CHECK(report.passed);
                CHECK(report.comparison.passed);
                CHECK(report.comparison.reference_rms > 0.05);
                CHECK(report.traffic.empty());
                for (const exec::MemoryCount& row : report.memory) {
                    CAPTURE(exec::to_string(row.category));
                    CHECK(row.lowest == row.predicted);
                }
            }
        }
    }
}

TEST_CASE("measured steps stay within the cache, times are those of the measured steps") {
    plan::Job job = test::job_of(test::tiny_llama(), workload_of(model::Mode::decode, 5));
    job.workload.cache_length = 7;
    exec::RunOptions options = options_of();
    options.steps = 10;
    const exec::RunReport report = run(job, options);
    CHECK(report.passed);
    CHECK(report.measured_steps == 2);
    CHECK(report.executed_steps == 7);
    CHECK(report.step_seconds.size() == 2);
    const auto linear = std::find_if(report.times.begin(), report.times.end(),
                                     [](const exec::StepTime& time) { return time.timer.name == "attention"; });
    REQUIRE(linear != report.times.end());
    CHECK(linear->calls == 2 * 2);
}

TEST_CASE("weights of a checkpoint give the logits of the weights they were saved from") {
    const test::TemporaryDirectory directory;
    const plan::Job job = test::job_of(test::tiny_falcon(), workload_of(model::Mode::prefill, 6));
    exec::RunOptions options = options_of();
    options.save_weights = directory / "weights";
    options.logits_file = directory / "a.safetensors";
    CHECK(run(job, options).passed);
    diag::Diagnostics diagnostics;
    options.checkpoint = config::read_checkpoint(options.save_weights, diagnostics);
    REQUIRE(options.checkpoint);
    options.save_weights.clear();
    options.logits_file = directory / "b.safetensors";
    CHECK(run(job, options).passed);
    const auto a = config::read_checkpoint(directory / "a.safetensors", diagnostics);
    const auto b = config::read_checkpoint(directory / "b.safetensors", diagnostics);
    REQUIRE(a);
    REQUIRE(b);
    model::Parameter logits;
    logits.name = "logits";
    logits.shape = logits.stored_shape = {2, 6, 64};
    std::vector<float> values[2] = {std::vector<float>(768), std::vector<float>(768)};
    for (const int i : {0, 1}) {
        exec::CheckpointWeights(i == 0 ? *a : *b, job.model)
            .fill(logits, -1, exec::whole_ranges(logits.shape),
                  {reinterpret_cast<std::byte*>(values[i].data()), tensor::DType::f32, logits.shape});
    }
    CHECK(values[0] == values[1]);
}

TEST_CASE("a wrong weight does not pass") {
    const test::TemporaryDirectory directory;
    const plan::Job job = test::job_of(test::tiny_llama(), workload_of(model::Mode::prefill, 6));
    const plan::Plan plan = test::plan_of(job);
    plan::Plan reference = test::reference_of(job, 6);
    reference.graph.parameters[3].name += "x";  // other seeded values
    const auto report = exec::run_and_verify(plan, reference, *comm::make_self_world(), options_of());
    CHECK_FALSE(report.passed);
    CHECK(report.comparison.failed > 0);
    exec::RunOptions unverified = options_of();
    unverified.verify = false;
    CHECK(exec::run_and_verify(plan, reference, *comm::make_self_world(), unverified).passed);
}

TEST_CASE("a plan whose numbers are wrong does not pass") {
    const plan::Job job = test::job_of(test::tiny_llama(), workload_of(model::Mode::prefill, 6));
    plan::Plan plan = test::plan_of(job);
    plan.memory.arena += 1;
    const auto report = exec::run_and_verify(plan, test::reference_of(job, 6), *comm::make_self_world(), options_of());
    CHECK_FALSE(report.passed);
    CHECK(report.comparison.passed);
}

TEST_CASE("token files and checkpoints that do not fit are reported and nothing runs") {
    const plan::Job job = test::job_of(test::tiny_llama(), workload_of(model::Mode::prefill, 4));
    exec::RunOptions options = options_of();
    options.tokens = exec::TokenBatch{2, 3, {1, 2, 3, 4, 5, 6}};
    exec::RunReport report = run(job, options);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].code == "SP7002");
    CHECK(report.executed_steps == 0);
    CHECK_FALSE(report.passed);
    options.tokens = exec::TokenBatch{2, 4, {1, 2, 3, 4, 5, 64, 7, 8}};
    options.checkpoint = tensor::Checkpoint{};
    report = run(job, options);
    REQUIRE(report.problems.size() > 2);
    CHECK(report.problems[0].message == "sequence 1, token 1: id 64 is not in [0, 64)");
    CHECK(report.problems[1].code == "SP7001");
    options = options_of();
    options.tokens = exec::TokenBatch{2, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
    CHECK(run(job, options).passed);
}

TEST_CASE("sequences of different lengths share a decode step") {
    const plan::Plan plan = test::plan_of(test::job_of(test::tiny_llama(), workload_of(model::Mode::decode, 8)));
    const auto world = comm::make_self_world();
    const auto groups = world->groups(plan.mesh.refined());
    const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
    const exec::SeededWeights weights(3, plan.graph.model);
    const exec::TokenBatch tokens = exec::seeded_tokens(1, 2, 6, 64);
    exec::Allocator allocator;
    const auto run_rows = [&](std::vector<std::int64_t> delays) {
        exec::Executor executor(plan, *groups, *kernels, weights, allocator);
        std::vector<exec::FloatTensor> logits;
        for (std::int64_t t = 0; t < 6; ++t) {
            std::vector<std::int64_t> positions;
            exec::TokenBatch ids{2, 1, {}};
            for (std::int64_t b = 0; b < 2; ++b) {
                positions.push_back(std::max<std::int64_t>(0, t - delays[static_cast<std::size_t>(b)]));
                ids.ids.push_back(tokens.at(b, positions.back()));
            }
            executor.run(ids, positions);
            logits.push_back(exec::gather_logits(*world, plan, executor));
        }
        return logits;
    };
    const auto together = run_rows({0, 0});
    const auto delayed = run_rows({0, 2});
    for (std::size_t i = 0; i < 64; ++i) {
        CHECK(delayed[5].values[i] == together[5].values[i]);
        CHECK(delayed[5].values[64 + i] == together[3].values[64 + i]);
    }
}

TEST_CASE("input that does not fit the plan is refused") {
    const plan::Plan plan = test::plan_of(test::job_of(test::tiny_llama(), workload_of(model::Mode::decode, 8)));
    const auto world = comm::make_self_world();
    const auto groups = world->groups(plan.mesh.refined());
    const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
    exec::Allocator allocator;
    exec::Executor executor(plan, *groups, *kernels, exec::SeededWeights(3, plan.graph.model), allocator);
    CHECK_THROWS_AS(executor.logits(), std::logic_error);
    CHECK_THROWS_AS(executor.run({1, 1, {3}}, 0), std::invalid_argument);
    CHECK_THROWS_AS(executor.run({2, 1, {3, 64}}, 0), std::invalid_argument);
    CHECK_THROWS_AS(executor.run({2, 1, {3, -1}}, 0), std::invalid_argument);
    CHECK_THROWS_WITH_AS(executor.run({2, 1, {3, 4}}, 16), doctest::Contains("16 positions cannot hold 17"),
                         std::invalid_argument);
    CHECK_NOTHROW(executor.run({2, 1, {3, 4}}, 15));
}
