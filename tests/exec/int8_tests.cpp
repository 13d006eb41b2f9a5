// Weights in int8: the error against the model they were rounded from, the memory, and what a wrong scale does.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "exec/compare.h"
#include "exec/logits.h"
#include "exec/models.h"
#include "exec/rounded_weights.h"
#include "exec/seeded_weights.h"
#include "exec/verify.h"
#include "kernels/reference/reference_kernels.h"

using namespace shardplan;

namespace {

plan::Job int8_job(const std::string& family, model::Mode mode, tensor::DType dtype) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = 2;
    workload.sequence_length = 9;
    workload.dtype = dtype;
    plan::Job job = test::job_of(test::tiny_model(family), workload);
    job.int8_weights = true;
    job.options.compat = partition::Compat::current;
    job.partition_axis = partition::PartitionAxis(partition::Compat::current);
    return job;
}

exec::RunReport run(const plan::Job& job, std::uint64_t seed, kernels::KernelSet kernels) {
    exec::RunOptions options;
    options.seed = seed;
    options.poison = true;
    options.kernels = kernels;
    const plan::Plan plan = test::plan_of(job);
    const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
    return exec::run_and_verify(plan, reference, *comm::make_self_world(), options);
}

/// One of the quantised weights has scales that are a quarter too large.
class WrongScale final : public kernels::ReferenceKernels {
public:
    explicit WrongScale(int wrong) : left_(wrong) {}
    std::unique_ptr<kernels::Weight> prepare(kernels::ConstView w, kernels::WeightOrder order,
                                             kernels::WeightFormat format) const override {
        std::vector<float> values(w.as<float>(), w.as<float>() + w.count());
        if (format == kernels::WeightFormat::int8 && left_-- == 0) {
            for (float& value : values) {
                value *= 1.25F;
            }
        }
        w.data = reinterpret_cast<const std::byte*>(values.data());
        return ReferenceKernels::prepare(w, order, format);
    }

private:
    mutable int left_;
};

exec::FloatTensor logits_of(const plan::Plan& plan, const kernels::Kernels& kernels) {
    const auto world = comm::make_self_world();
    const auto groups = world->groups(plan.mesh.refined());
    const exec::SeededWeights weights(3, plan.graph.model);
    exec::Allocator allocator(true);
    exec::Executor executor(plan, *groups, kernels, weights, allocator);
    executor.run(exec::seeded_tokens(3, 2, 9, plan.graph.model.vocab), 0);
    return exec::gather_logits(*world, plan, executor);
}

}  // namespace

TEST_CASE("int8 weights: every seed, mode, dtype and set of kernels is within the tolerance, memory is the plan's") {
    double most = 0.0;
    double least = 1.0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
            for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::bf16}) {
                for (const auto kernels : {kernels::KernelSet::reference, kernels::KernelSet::onednn}) {
                    const exec::RunReport report = run(int8_job("llama", mode, dtype), seed, kernels);
                    CAPTURE(seed);
                    CAPTURE(report.comparison.relative_rms);
                    REQUIRE(report.rounding);
                    const exec::Comparison& rounding = report.rounding->comparison;
                    CAPTURE(rounding.relative_rms);
                    CAPTURE(rounding.max_absolute);
                    CHECK(report.passed);
                    CHECK(report.comparison.tolerance.rms == exec::tolerance_of(dtype, 2).rms);
                    for (const exec::MemoryCount& row : report.memory) {
                        CHECK(row.equal());
                    }
                    if (dtype == tensor::DType::f32) {
                        most = std::max(most, rounding.relative_rms);
                        least = std::min(least, rounding.relative_rms);
                    }
                }
            }
        }
    }
    MESSAGE("relative rms " << least << " to " << most << ", tolerated "
                            << exec::int8_tolerance_of(tensor::DType::f32, 2).rms);
    CHECK(least > 1e-4);  // it is quantised
    CHECK(most > 0.1 * exec::int8_tolerance_of(tensor::DType::f32, 2).rms);
}

TEST_CASE("int8 weights: latent attention, experts, tied heads and windows") {
    for (const char* family : {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "moonlight"}) {
        for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
            const exec::RunReport report =
                run(int8_job(family, mode, tensor::DType::f32), 4, kernels::KernelSet::reference);
            CAPTURE(family);
            CAPTURE(report.comparison.relative_rms);
            REQUIRE(report.rounding);
            CAPTURE(report.rounding->comparison.relative_rms);
            CAPTURE(report.rounding->comparison.max_absolute);
            CHECK(report.passed);
            CHECK(report.routing_ties == 0);  // the same weights, in f32
        }
    }
}

TEST_CASE("int8 weights: the scales of any one product a quarter too large do not pass") {
    const plan::Job job = int8_job("llama", model::Mode::prefill, tensor::DType::f32);
    const plan::Plan plan = test::plan_of(job);
    const exec::FloatTensor expected =
        logits_of(test::reference_of(job, 9), *kernels::make_kernels(kernels::KernelSet::reference));
    const exec::Tolerance tolerance = exec::int8_tolerance_of(tensor::DType::f32, 2);
    constexpr int products = 2 * 7 + 1;  // q, k, v, o, gate, up, down; the head
    for (int wrong = 0; wrong < products; ++wrong) {
        CAPTURE(wrong);
        const exec::Comparison found = exec::compare(logits_of(plan, WrongScale(wrong)), expected, tolerance);
        CAPTURE(found.relative_rms);
        CHECK_FALSE(found.passed);
    }
    CHECK(exec::compare(logits_of(plan, WrongScale(products)), expected, tolerance).passed);
}

TEST_CASE("int8 weights: generated tokens are counted, not required") {
    const plan::Job job = int8_job("llama", model::Mode::decode, tensor::DType::bf16);
    exec::RunOptions options;
    options.generate = true;
    options.steps = 6;
    plan::Job longer = job;
    longer.workload.cache_length = 20;
    const plan::Plan plan = test::plan_of(longer);
    const exec::RunReport report = exec::run_and_verify(
        plan, test::reference_of(longer, exec::tokens_needed(plan, options)), *comm::make_self_world(), options);
    CHECK(report.passed);
    CHECK(report.generated.size() == 2);
    CHECK(report.token_mismatches <= 12);
    REQUIRE(report.rounding);
    CHECK(report.rounding->token_mismatches <= 12);
}

TEST_CASE("int8 weights: generated tokens in f32 are those of the unsharded model of the same weights") {
    plan::Job job = int8_job("llama", model::Mode::decode, tensor::DType::f32);
    job.workload.cache_length = 20;
    exec::RunOptions options;
    options.generate = true;
    options.steps = 6;
    const plan::Plan plan = test::plan_of(job);
    const exec::RunReport report = exec::run_and_verify(
        plan, test::reference_of(job, exec::tokens_needed(plan, options)), *comm::make_self_world(), options);
    CHECK(report.passed);
    CHECK(report.token_mismatches == 0);
}

namespace {

using Ranges = std::vector<base::Interval>;

std::vector<float> read(const exec::WeightSource& source, const model::Parameter& parameter, int layer,
                        const Ranges& ranges) {
    tensor::Shape shape;
    for (const base::Interval& range : ranges) {
        shape.push_back(range.size());
    }
    std::vector<float> values(static_cast<std::size_t>(tensor::element_count(shape)));
    source.fill(parameter, layer, ranges, {reinterpret_cast<std::byte*>(values.data()), tensor::DType::f32, shape});
    return values;
}

/// The values of w [n, k] that products use once it is int8: those with the rows of the identity.
std::vector<float> used_values(const std::vector<float>& w, std::int64_t n, std::int64_t k) {
    const kernels::ReferenceKernels kernels;
    const auto weight = kernels.prepare({reinterpret_cast<const std::byte*>(w.data()), tensor::DType::f32, {n, k}},
                                        kernels::WeightOrder::out_in, kernels::WeightFormat::int8);
    std::vector<float> identity(static_cast<std::size_t>(k * k));
    for (std::int64_t i = 0; i < k; ++i) {
        identity[static_cast<std::size_t>(i * k + i)] = 1.0F;
    }
    std::vector<float> columns(static_cast<std::size_t>(k * n));
    kernels.matmul({reinterpret_cast<const std::byte*>(identity.data()), tensor::DType::f32, {k, k}}, *weight,
                   {reinterpret_cast<std::byte*>(columns.data()), tensor::DType::f32, {k, n}});
    std::vector<float> result(columns.size());
    for (std::int64_t i = 0; i < n * k; ++i) {
        result[static_cast<std::size_t>(i)] = columns[static_cast<std::size_t>(i % k * n + i / k)];
    }
    return result;
}

}  // namespace

TEST_CASE("int8 weights: put together again they are each rank's own rounding, any block of them") {
    plan::Job job = int8_job("llama", model::Mode::prefill, tensor::DType::f32);
    job.mesh = mesh::Mesh({{"tp", 2}});
    job.workload.sequence_length = 8;
    const plan::Plan plan = test::plan_of(job);
    const exec::SeededWeights weights(3, plan.graph.model);
    const exec::RoundedWeights rounded(weights, plan);
    int cut = 0;
    for (const plan::StoredTensor& stored : plan.stored) {
        if (stored.kind != plan::StoredKind::parameter) {
            continue;
        }
        const model::Parameter& parameter = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)];
        const int layer = stored.layers.front();
        CAPTURE(stored.name);
        const std::vector<float> whole = read(rounded, parameter, layer, exec::whole_ranges(stored.shape));
        if (stored.dtype != tensor::DType::i8) {
            CHECK(whole == read(weights, parameter, layer, exec::whole_ranges(stored.shape)));
            continue;
        }
        cut += stored.local_shape[1] < stored.shape[1] ? 1 : 0;
        for (std::int64_t rank = 0; rank < 2; ++rank) {
            const Ranges ranges = partition::local_ranges(stored.layout, stored.shape, plan.mesh.refined(), rank);
            const std::int64_t k = ranges[1].size();
            const std::vector<float> used = used_values(read(weights, parameter, layer, ranges), ranges[0].size(), k);
            CHECK(read(rounded, parameter, layer, ranges) == used);
            bool equal = true;
            for (std::int64_t i = 0; i < std::ssize(used); ++i) {
                const std::int64_t place = (ranges[0].begin + i / k) * stored.shape[1] + ranges[1].begin + i % k;
                equal = equal && whole[static_cast<std::size_t>(place)] == used[static_cast<std::size_t>(i)];
            }
            CHECK(equal);
        }
    }
    CHECK(cut > 0);
}
