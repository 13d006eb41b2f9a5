// The logits and greedy tokens of Hugging Face transformers again, from models that are sharded over the ranks.
#include <doctest/doctest.h>

#include <map>

#include "exec/golden.h"
#include "support/mpi_world.h"

using namespace shardplan;

namespace {

const std::map<std::int64_t, std::vector<std::string>> meshes = {{2, {"tp=2", "sp=2", "fsdp=2"}},
                                                                 {4, {"sp=2,fsdp=2", "fsdp=2,tp=2", "tp=2,sp=2"}}};

/// An odd vocabulary stays whole.
plan::Job sharded(const test::Golden& golden, const model::Workload& workload, const std::string& mesh) {
    plan::Job job = test::job_of(golden.model, workload, mesh);
    job.options.indivisible = plan::Indivisible::drop;
    return job;
}

exec::FloatTensor prefill(const test::Golden& golden, const plan::Plan& plan, comm::World& world) {
    const auto groups = world.groups(plan.mesh.refined());
    const auto kernels = kernels::make_kernels(kernels::KernelSet::onednn);
    exec::Allocator allocator(true);
    const exec::CheckpointWeights weights(golden.weights, golden.model);
    exec::Executor executor(plan, *groups, *kernels, weights, allocator);
    executor.run(golden.tokens, 0);
    return exec::gather_logits(world, plan, executor);
}

}  // namespace

TEST_CASE("sharded prefill gives the logits of transformers") {
    comm::World& world = test::mpi_world();
    if (!meshes.contains(world.size())) {
        return;
    }
    for (const std::string name : test::golden_models) {
        const test::Golden golden = test::read_golden(name);
        for (const std::string& mesh : meshes.at(world.size())) {
            const plan::Plan plan =
                test::plan_of(sharded(golden, test::f32_workload(model::Mode::prefill, test::golden_length), mesh));
            const exec::FloatTensor logits = prefill(golden, plan, world);
            if (world.rank() == 0) {
                const auto result = test::compare_strictly(logits, golden.logits);
                CHECK_MESSAGE(result.passed, name << " on " << mesh << ": " << test::describe(result));
            }
        }
    }
}

TEST_CASE("with the rule tables of EasyDeL the logits are the same, whatever pairs of axes they have") {
    comm::World& world = test::mpi_world();
    if (!meshes.contains(world.size())) {
        return;
    }
    std::map<partition::RuleSource, int> models;
    for (const std::string name : test::golden_models) {
        const test::Golden golden = test::read_golden(name);
        for (const auto source : {partition::RuleSource::seed_0_0_80, partition::RuleSource::easydel_0_2}) {
            for (const std::string& mesh : meshes.at(world.size())) {
                plan::Job job = sharded(golden, test::f32_workload(model::Mode::prefill, test::golden_length), mesh);
                job.rule_source = source;
                diag::Diagnostics diagnostics;
                const auto plan = plan::make_plan(job, diagnostics);
                if (!plan) {  // the table has no rules for the model
                    CHECK_MESSAGE(test::text_of(diagnostics).find("SP4005") != std::string::npos,
                                  name << test::text_of(diagnostics));
                    continue;
                }
                models[source] += 1;
                const exec::FloatTensor logits = prefill(golden, *plan, world);
                if (world.rank() == 0) {
                    const auto result = test::compare_strictly(logits, golden.logits);
                    CHECK_MESSAGE(result.passed, name << " on " << mesh << ": " << test::describe(result));
                }
            }
        }
    }
    CHECK(models[partition::RuleSource::seed_0_0_80] >= 40);
    CHECK(models[partition::RuleSource::easydel_0_2] >= 40);
}

TEST_CASE("sharded generation gives the greedy tokens of transformers") {
    comm::World& world = test::mpi_world();
    if (!meshes.contains(world.size())) {
        return;
    }
    for (const std::string name : test::golden_models) {
        const std::vector<std::int32_t> expected = test::golden_greedy(name);
        if (expected.empty()) {
            continue;
        }
        const test::Golden golden = test::read_golden(name);
        for (const std::string& mesh : meshes.at(world.size())) {
            const plan::Job job = sharded(golden, test::f32_workload(model::Mode::decode, 1), mesh);
            const auto report = test::generate_golden(golden, job, world);
            CHECK_MESSAGE(report.passed, name << " on " << mesh);
            if (world.rank() == 0) {
                REQUIRE(report.generated.size() == 2);
                CHECK_MESSAGE(report.generated[0] == expected, name << " on " << mesh);
            }
        }
    }
}
