// Latent attention and the DeepSeek kinds on one rank: against a model written out by hand, the absorbed decode step
// against the expanded one, what the cache holds.
#include <doctest/doctest.h>

#include "config/safetensors.h"
#include "exec/deepseek_model.h"
#include "exec/models.h"
#include "exec/safetensors_writer.h"
#include "exec/seeded_weights.h"
#include "exec/temporary.h"
#include "exec/verify.h"

using namespace shardplan;
using backend::ProviderChoice;

namespace {

constexpr std::int64_t batch = 2;
constexpr std::int64_t length = 9;
constexpr std::uint64_t seed = 11;

plan::Plan plan_of(const std::string& model, model::Mode mode, ProviderChoice provider) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = batch;
    workload.sequence_length = length;
    workload.dtype = tensor::DType::f32;
    plan::Job job = test::job_of(test::tiny_model(model), workload);
    job.provider = provider;
    job.options.compat = partition::Compat::current;  // whose inference provider has experts
    return test::plan_of(job);
}

exec::TokenBatch tokens_of_run() {
    return exec::seeded_tokens(seed, batch, length, 64);
}

/// All tokens at once in prefill, one after the other in decode: [batch, length, vocabulary].
exec::FloatTensor logits_of(const plan::Plan& plan, kernels::KernelSet set = kernels::KernelSet::reference) {
    const auto world = comm::make_self_world();
    const auto groups = world->groups(plan.mesh.refined());
    const auto kernels = kernels::make_kernels(set);
    exec::Allocator allocator(true);
    exec::Executor executor(plan, *groups, *kernels, exec::SeededWeights(seed, plan.graph.model), allocator);
    const exec::TokenBatch tokens = tokens_of_run();
    if (plan.graph.workload.mode == model::Mode::prefill) {
        executor.run(tokens, 0);
        return exec::gather_logits(*world, plan, executor);
    }
    exec::FloatTensor logits{{batch, length, 64}, std::vector<float>(batch * length * 64)};
    for (std::int64_t t = 0; t < length; ++t) {
        executor.run(tokens.slice({t, t + 1}), t);
        exec::put_tokens(exec::gather_logits(*world, plan, executor), t, logits);
    }
    return logits;
}

/// "" where all of them are within 2e-5 of each other.
std::string difference(const exec::FloatTensor& x, const exec::FloatTensor& y) {
    const exec::Comparison c = exec::compare(x, y, {2e-5, 2e-5, 2e-5});
    return c.passed && c.reference_rms > 0.05
               ? ""
               : fmt::format("{} differ, max {:.3g}, rms {:.3g}", c.failed, c.max_absolute, c.relative_rms);
}

exec::FloatTensor by_hand(const plan::Plan& plan) {
    const test::TemporaryDirectory directory;
    exec::save_weights(directory / "weights", plan.graph, tensor::DType::f32,
                       exec::SeededWeights(seed, plan.graph.model));
    diag::Diagnostics diagnostics;
    const auto checkpoint = config::read_checkpoint(directory / "weights", diagnostics);
    REQUIRE(checkpoint);
    const test::NaiveDeepseek naive(*checkpoint, plan.graph.model);
    const exec::TokenBatch tokens = tokens_of_run();
    exec::FloatTensor logits{{batch, length, 64}, {}};
    for (std::int64_t b = 0; b < batch; ++b) {
        const auto begin = tokens.ids.begin() + b * length;
        for (const auto& row : naive.logits({begin, begin + length})) {
            logits.values.insert(logits.values.end(), row.begin(), row.end());
        }
    }
    return logits;
}

bool has_op(const plan::Plan& plan, const std::string& name) {
    const model::Block& block = plan.graph.blocks[1];
    return std::any_of(block.ops.begin(), block.ops.end(), [&](const model::Op& op) { return op.name == name; });
}

}  // namespace

TEST_CASE("DeepSeek against the model written out by hand: prefill, expanded and absorbed decode") {
    for (const char* model : {"deepseek_v2", "deepseek_v3", "deepseek_v3 with biases"}) {
        CAPTURE(std::string(model));
        const plan::Plan prefill = plan_of(model, model::Mode::prefill, ProviderChoice::local);
        const exec::FloatTensor expected = by_hand(prefill);
        CHECK(difference(logits_of(prefill), expected) == "");
        for (const auto provider : {ProviderChoice::local, ProviderChoice::fused, ProviderChoice::automatic}) {
            const plan::Plan decode = plan_of(model, model::Mode::decode, provider);
            CHECK(has_op(decode, "q_absorb") == (decode.provider.kind == backend::ProviderKind::inference));
            CHECK(difference(logits_of(decode), expected) == "");
            CHECK(difference(logits_of(decode, kernels::KernelSet::onednn), expected) == "");
        }
        CHECK(difference(logits_of(plan_of(model, model::Mode::prefill, ProviderChoice::fused)), expected) == "");
    }
}

TEST_CASE("absorbed equals expanded") {
    for (const char* model : {"deepseek_v2", "deepseek_v3"}) {
        const plan::Plan absorbed = plan_of(model, model::Mode::decode, ProviderChoice::inference);
        const plan::Plan expanded = plan_of(model, model::Mode::decode, ProviderChoice::local);
        CHECK(has_op(absorbed, "q_absorb"));
        CHECK(has_op(expanded, "k_b_proj"));
        CHECK(difference(logits_of(absorbed), logits_of(expanded)) == "");
    }
}

TEST_CASE("the cache holds one latent and one rotated key per token, whatever the number of heads") {
    for (const auto provider : {ProviderChoice::inference, ProviderChoice::local}) {
        const plan::Plan plan = plan_of("deepseek_v3", model::Mode::decode, provider);
        int caches = 0;
        for (const plan::StoredTensor& stored : plan.stored) {
            if (stored.kind == plan::StoredKind::cache) {
                CHECK(stored.name == "layers.{}.cache.latent");
                CHECK(stored.shape == tensor::Shape{batch, plan.job.workload.cache_slots(), 1, 16 + 4});
                ++caches;
            }
        }
        CHECK(caches == 2);  // of the dense layer and of that with experts
    }
}

TEST_CASE("one rank: DeepSeek agrees with the plan's numbers, also where prefill fills a cache") {
    for (const char* model : {"deepseek_v2", "deepseek_v3"}) {
        for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
            model::Workload workload;
            workload.mode = mode;
            workload.batch_size = batch;
            workload.sequence_length = length;
            workload.cache_length = 16;
            workload.dtype = tensor::DType::f32;
            plan::Job job = test::job_of(test::tiny_model(model), workload);
            job.options.compat = partition::Compat::current;
            exec::RunOptions options;
            options.seed = seed;
            options.poison = true;
            const plan::Plan plan = test::plan_of(job);
            const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
            const auto report = exec::run_and_verify(plan, reference, *comm::make_self_world(), options);
            CAPTURE(std::string(model));
            CHECK(report.passed);
            CHECK(plan.memory.cache == 2 * batch * 16 * 20 * 4);
        }
    }
}
