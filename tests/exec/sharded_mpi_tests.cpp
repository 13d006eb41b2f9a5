// Runs tiny models on meshes of real ranks and compares them with the unsharded model; predicted bytes and memory must
// be those that were counted, exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "exec/models.h"
#include "exec/seeded_weights.h"
#include "exec/sharded_cases.h"
#include "exec/verify.h"
#include "support/mpi_world.h"

using namespace shardplan;

namespace {

plan::Job job_of(const test::ShardedCase& c) {
    model::Workload workload;
    workload.mode = c.mode;
    workload.batch_size = c.batch;
    workload.sequence_length = c.tokens;
    workload.cache_length = c.cache;
    workload.dtype = c.dtype;
    workload.chunk_length = c.chunk;
    workload.insert_length = c.insert > 0 ? c.insert : workload.insert_length;
    model::ModelSpec model = test::tiny_model(c.model);
    model.vocab -= c.pad ? 3 : 0;
    plan::Job job = test::job_of(std::move(model), workload, c.mesh);
    job.options.indivisible = c.pad ? plan::Indivisible::pad : plan::Indivisible::strict;
    job.provider = c.provider;
    job.options.kv_heads = c.kv_heads;
    job.dispatcher = c.dispatcher;
    job.experts.use_grouped_gemm = c.grouped;
    job.int8_weights = c.int8;
    job.options.compat = c.compat;
    if (c.current_fields) {
        job.options.compat = partition::Compat::current;
        job.partition_axis = partition::PartitionAxis(partition::Compat::current);
    }
    job.options.cp_comm_type = c.cp_comm_type;
    job.options.context_parallel_load_balance = c.zigzag;
    for (const auto& [field, axes] : c.axes) {
        job.partition_axis.set(field, axes, "/partition_axis/" + field);
    }
    return job;
}

/// By hand only some cases: those whose name has the text of SHARDPLAN_CASES.
bool is_wanted(const test::ShardedCase& c) {
    const char* const text = std::getenv("SHARDPLAN_CASES");
    return text == nullptr || c.name().find(text) != std::string::npos;
}

std::string text_of(const exec::RunReport& report) {
    std::string text =
        fmt::format("max |a-b| {:.3g}, relative rms {:.3g}, rms {:.3g}\n", report.comparison.max_absolute,
                    report.comparison.relative_rms, report.comparison.reference_rms);
    for (const exec::TrafficCount& row : report.traffic) {
        text += fmt::format("{}: {} calls for {}, {} bytes for {}, most {}, routed {}\n", mesh::to_string(row.kind),
                            row.counted_calls, row.predicted_calls, row.counted_bytes, row.predicted_bytes,
                            row.most_bytes.value_or(-1), row.routed_bytes.value_or(-1));
    }
    for (const exec::MemoryCount& row : report.memory) {
        text += fmt::format("{}: {} .. {} bytes for {}\n", exec::to_string(row.category), row.lowest, row.highest,
                            row.predicted);
    }
    return text;
}

}  // namespace

TEST_CASE("sharded runs equal the unsharded model, bytes and memory equal the plan's") {
    comm::World& world = test::mpi_world();
    int cases = 0;
    std::int64_t ties = 0;
    int int8 = 0;  // cases with such weights
    for (const test::ShardedCase& c : test::sharded_cases()) {
        const plan::Job job = job_of(c);
        if (job.mesh.device_count() != world.size() || !is_wanted(c)) {
            continue;
        }
        ++cases;
        exec::RunOptions options;
        options.seed = 2;
        options.steps = 3;
        options.kernels = c.kernels;
        options.poison = true;
        const plan::Plan plan = test::plan_of(job);
        const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
        const exec::RunReport report = exec::run_and_verify(plan, reference, world, options);
        CHECK_MESSAGE(report.passed, c.name() << "\n" << text_of(report));
        if (c.int8) {
            const auto& stored = plan.stored;
            const bool any = std::any_of(stored.begin(), stored.end(),
                                         [](const auto& tensor) { return tensor.dtype == tensor::DType::i8; });
            int8 += any ? 1 : 0;
        }
        ties += report.routing_ties;
        CHECK_MESSAGE((report.routing_ties == 0 || c.dtype == tensor::DType::bf16), c.name());
        bool sends = false;
        for (const exec::TrafficCount& row : report.traffic) {
            CHECK_MESSAGE(row.equal(), c.name());
            const bool rows = row.kind == mesh::CollectiveKind::all_to_all_v;
            sends = sends || rows;
            CHECK_MESSAGE(row.most_bytes.has_value() == rows, c.name());
            if (rows && world.rank() == 0) {
                CHECK_MESSAGE(row.routed_bytes.has_value() == (c.dtype == tensor::DType::f32), c.name());
            }
        }
        CHECK_MESSAGE((sends || c.dispatcher != plan::TokenDispatcher::all_to_all), c.name());
        for (const exec::MemoryCount& row : report.memory) {
            CHECK_MESSAGE(row.equal(), c.name());
        }
    }
    CHECK(cases > 0);
    CHECK((int8 > 0 || world.size() == 3 || std::getenv("SHARDPLAN_CASES") != nullptr));
    if (world.rank() == 0) {
        fmt::print("{} cases on {} ranks, {} choices of experts at near ties\n", cases, world.size(), ties);
    }
}

TEST_CASE("a cache holds the same rows in zig-zag as in order") {
    comm::World& world = test::mpi_world();
    test::ShardedCase c{.model = "llama", .mesh = fmt::format("sp={}", world.size()), .batch = 2, .tokens = 48};
    c.cache = 48;
    c.axes = {{"weight_storage_axis", {}}};
    const exec::TokenBatch tokens = exec::seeded_tokens(5, c.batch, c.tokens, 64);
    std::vector<std::vector<float>> rows;
    for (const bool zigzag : {false, true}) {
        c.zigzag = zigzag;
        const plan::Plan plan = test::plan_of(job_of(c));
        CHECK(plan.token_order.plain() == !zigzag);
        const exec::SeededWeights weights(5, plan.graph.model);
        const auto groups = world.groups(plan.mesh.refined());
        const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
        exec::Allocator allocator(true);
        exec::Executor executor(plan, *groups, *kernels, weights, allocator);
        executor.run(tokens, 0);
        std::vector<float>& all = rows.emplace_back();
        for (std::size_t i = 0; i < plan.stored.size(); ++i) {
            if (plan.stored[i].kind == plan::StoredKind::cache) {
                const tensor::ConstView cache = executor.cache(i, 1);
                all.insert(all.end(), cache.as<float>(), cache.as<float>() + cache.count());
            }
        }
    }
    REQUIRE(rows[0].size() == rows[1].size());
    CHECK(std::ssize(rows[0]) == 2 * (2 * 48 * 4 * 4) / world.size());
    CHECK(std::any_of(rows[0].begin(), rows[0].end(), [](float value) { return value != 0.0F; }));
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
        CHECK(rows[1][i] == doctest::Approx(rows[0][i]).epsilon(1e-4));
    }
}

TEST_CASE("ranks with different plans do not start") {
    comm::World& world = test::mpi_world();
    const auto c = test::sharded_cases().front();
    const plan::Plan plan = test::plan_of(job_of(c));
    exec::RunOptions options;
    options.plan_hash = static_cast<std::uint64_t>(world.rank());
    CHECK_THROWS_WITH_AS(exec::run_and_verify(plan, plan, world, options), doctest::Contains("different plans"),
                         std::runtime_error);
}

TEST_CASE("a problem on one rank ends the run on all of them in the same way") {
    comm::World& world = test::mpi_world();
    model::Workload workload;
    workload.batch_size = 24;
    workload.sequence_length = 8;
    const plan::Job job = test::job_of(test::tiny_llama(), workload, fmt::format("dp={}", world.size()));
    exec::RunOptions options;
    options.tokens = exec::seeded_tokens(1, 24, world.rank() == 1 ? 7 : 8, 64);
    const auto report = exec::run_and_verify(test::plan_of(job), test::reference_of(job, 8), world, options);
    CHECK_FALSE(report.passed);
    CHECK(report.executed_steps == 0);
    CHECK(report.problems.empty() == (world.rank() != 1));
}
