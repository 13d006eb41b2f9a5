// Weights in int8: the error against the model they were rounded from, the memory, and what a wrong scale does.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "exec/compare.h"
#include "exec/logits.h"
#include "exec/models.h"
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
                    CAPTURE(report.comparison.max_absolute);
                    CHECK(report.passed);
                    for (const exec::MemoryCount& row : report.memory) {
                        CHECK(row.equal());
                    }
                    if (dtype == tensor::DType::f32) {
                        most = std::max(most, report.comparison.relative_rms);
                        least = std::min(least, report.comparison.relative_rms);
                    }
                }
            }
        }
    }
    MESSAGE("relative rms " << least << " to " << most << ", tolerated "
                            << exec::tolerance_of(tensor::DType::f32, 2, true).rms);
    CHECK(least > 1e-4);  // it is quantised
    CHECK(most > 0.1 * exec::tolerance_of(tensor::DType::f32, 2, true).rms);
}

TEST_CASE("int8 weights: latent attention, experts, tied heads and windows") {
    for (const char* family : {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "moonlight"}) {
        for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
            const exec::RunReport report =
                run(int8_job(family, mode, tensor::DType::f32), 4, kernels::KernelSet::reference);
            CAPTURE(family);
            CAPTURE(report.comparison.relative_rms);
            CAPTURE(report.comparison.max_absolute);
            CHECK(report.passed);
        }
    }
}

TEST_CASE("int8 weights: the scales of any one product a quarter too large do not pass") {
    const plan::Job job = int8_job("llama", model::Mode::prefill, tensor::DType::f32);
    const plan::Plan plan = test::plan_of(job);
    const exec::FloatTensor expected =
        logits_of(test::reference_of(job, 9), *kernels::make_kernels(kernels::KernelSet::reference));
    const exec::Tolerance tolerance = exec::tolerance_of(tensor::DType::f32, 2, true);
    constexpr int products = 2 * 4 + 1;  // norm and qkv, o, norm and gate and up, down; the head
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
}
