// What the inference provider executes as one step gives the same bits as the steps apart, and counts the same bytes.
#include <doctest/doctest.h>

#include <algorithm>

#include "exec/executor.h"
#include "exec/models.h"
#include "exec/seeded_weights.h"
#include "exec/verify.h"
#include "support/mpi_world.h"

using namespace shardplan;

namespace {

plan::Plan plan_with(backend::ProviderChoice provider, std::int64_t ranks) {
    model::Workload workload;
    workload.batch_size = 2;
    workload.sequence_length = 16;
    workload.dtype = tensor::DType::f32;
    plan::Job job = test::job_of(test::tiny_llama(), workload, fmt::format("tp={}", ranks));
    job.provider = provider;
    job.partition_axis.set("hidden_state_axis", {}, "/partition_axis/hidden_state_axis");
    job.partition_axis.set("sequence_axis", {"tp"}, "/partition_axis/sequence_axis");
    return test::plan_of(job);
}

bool has_joined_steps(const plan::Plan& plan) {
    return std::any_of(plan.blocks.begin(), plan.blocks.end(), [](const plan::BlockPlan& block) {
        return std::any_of(block.steps.begin(), block.steps.end(),
                           [](const plan::Step& step) { return step.joined > 0; });
    });
}

}  // namespace

TEST_CASE("joined steps give the bits of the steps apart, and the bytes that were predicted") {
    comm::World& world = test::mpi_world();
    if (8 % world.size() != 0) {
        return;  // the heads do not divide
    }
    const exec::TokenBatch tokens = exec::seeded_tokens(5, 2, 16, 64);
    std::vector<std::vector<std::byte>> bits;
    for (const auto provider : {backend::ProviderChoice::fused, backend::ProviderChoice::inference}) {
        const plan::Plan plan = plan_with(provider, world.size());
        CHECK(has_joined_steps(plan) == (provider == backend::ProviderChoice::inference));
        const exec::SeededWeights weights(5, plan.graph.model);
        const auto groups = world.groups(plan.mesh.refined());
        const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
        exec::Allocator allocator(true);
        exec::Executor executor(plan, *groups, *kernels, weights, allocator);
        executor.run(tokens, 0);
        executor.run(tokens, 0);  // nothing is left over from the step before
        const tensor::ConstView logits = executor.logits().values;
        bits.emplace_back(logits.data, logits.data + logits.bytes());
        for (const exec::TrafficCount& row : exec::compare_traffic(world, plan, groups->traffic(), 2)) {
            CHECK_MESSAGE(row.equal(), mesh::to_string(row.kind));
        }
        for (const exec::MemoryCount& row : exec::compare_memory(world, plan, allocator)) {
            CHECK_MESSAGE(row.equal(), exec::to_string(row.category));
        }
    }
    CHECK(bits[0] == bits[1]);
}
