// The logits of Hugging Face transformers for tiny models of every family: computed by another implementation,
// from its own config and checkpoint files. Nothing in shardplan took part in making them.
#include <doctest/doctest.h>

#include "exec/golden.h"

using namespace shardplan;

TEST_CASE("prefill on one rank gives the logits of transformers, with every provider and set of kernels") {
    for (const std::string name : test::golden_models) {
        const test::Golden golden = test::read_golden(name);
        CHECK(exec::check_checkpoint(model::build_graph(golden.model, {}), golden.weights).empty());
        for (const auto provider : {backend::ProviderChoice::local, backend::ProviderChoice::automatic}) {
            plan::Job job = test::job_of(golden.model, test::f32_workload(model::Mode::prefill, test::golden_length));
            job.provider = provider;
            const plan::Plan plan = test::plan_of(job);
            for (const auto set : {kernels::KernelSet::reference, kernels::KernelSet::onednn}) {
                const auto world = comm::make_self_world();
                const auto groups = world->groups(plan.mesh.refined());
                const auto kernels = kernels::make_kernels(set);
                exec::Allocator allocator(true);
                const exec::CheckpointWeights weights(golden.weights, golden.model);
                exec::Executor executor(plan, *groups, *kernels, weights, allocator);
                executor.run(golden.tokens, 0);
                const auto result = test::compare_strictly(exec::gather_logits(*world, plan, executor), golden.logits);
                CHECK_MESSAGE(result.passed, name << ", " << backend::to_string(plan.provider.kind) << ", "
                                                  << kernels::to_string(set) << ": " << test::describe(result));
            }
        }
    }
}

TEST_CASE("decode, token by token from an empty cache, gives the same logits") {
    for (const std::string name : test::golden_models) {
        const test::Golden golden = test::read_golden(name);
        const plan::Plan plan =
            test::plan_of(test::job_of(golden.model, test::f32_workload(model::Mode::decode, test::golden_length - 1)));
        const auto world = comm::make_self_world();
        const auto groups = world->groups(plan.mesh.refined());
        const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
        exec::Allocator allocator(true);
        const exec::CheckpointWeights weights(golden.weights, golden.model);
        exec::Executor executor(plan, *groups, *kernels, weights, allocator);
        exec::FloatTensor logits{golden.logits.shape, std::vector<float>(golden.logits.values.size())};
        for (std::int64_t t = 0; t < test::golden_length; ++t) {
            executor.run(golden.tokens.slice({t, t + 1}), t);
            exec::put_tokens(exec::gather_logits(*world, plan, executor), t, logits);
        }
        const auto result = test::compare_strictly(logits, golden.logits);
        CHECK_MESSAGE(result.passed, name << ": " << test::describe(result));
    }
}

TEST_CASE("greedy generation after a prompt gives the tokens of transformers") {
    int models = 0;
    for (const std::string name : test::golden_models) {
        const std::vector<std::int32_t> expected = test::golden_greedy(name);
        if (expected.empty()) {
            continue;
        }
        ++models;
        const test::Golden golden = test::read_golden(name);
        const plan::Job job = test::job_of(golden.model, test::f32_workload(model::Mode::decode, 1));
        const auto report = test::generate_golden(golden, job, *comm::make_self_world());
        CHECK_MESSAGE(report.passed, name);
        CHECK_MESSAGE(report.token_mismatches == 0, name);
        REQUIRE(report.generated.size() == 2);
        CHECK_MESSAGE(report.generated[0] == expected, name);
        CHECK_MESSAGE(report.generated[1] == expected, name);
    }
    CHECK(models == 9);
}
