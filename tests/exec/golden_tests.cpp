// The logits of Hugging Face transformers for tiny models of every family: computed by another implementation,
// from its own config and checkpoint files. Nothing in shardplan took part in making them.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "config/safetensors.h"
#include "config/token_file.h"
#include "exec/checkpoint_weights.h"
#include "exec/executor.h"
#include "exec/models.h"
#include "exec/verify.h"

using namespace shardplan;

namespace {

const char* const models[] = {"bloom-alibi",    "cohere",
                              "falcon-40b-gqa", "falcon-7b-mq",
                              "gemma-mqa",      "gemma2",
                              "gpt2",           "gpt2-legacy-names",
                              "gptj",           "gptneox-parallel",
                              "granite",        "llama-bias-tied-mha",
                              "llama-gqa",      "llama3-rope",
                              "mistral-gqa",    "mixtral-top2of4",
                              "olmo-clip",      "olmoe",
                              "opt-preln",      "phi-partial",
                              "phi3-fused",     "qwen2-tied",
                              "qwen2moe",       "stablelm-2-qkvbias",
                              "starcoder2"};

constexpr std::int64_t batch = 2;
constexpr std::int64_t length = 12;

std::string directory_of(const std::string& name) {
    return std::string(SHARDPLAN_SOURCE_DIR "/tests/data/logits/") + name;
}

template <typename T>
T need(std::optional<T> value, const diag::Diagnostics& diagnostics) {
    if (!value || diagnostics.has_errors()) {
        throw std::runtime_error(test::text_of(diagnostics));
    }
    return *value;
}

struct Golden {
    model::ModelSpec model;
    tensor::Checkpoint weights;
    exec::TokenBatch tokens;
    exec::FloatTensor logits;
};

Golden read_golden(const std::string& name) {
    const std::string directory = directory_of(name);
    diag::Diagnostics diagnostics;
    Golden golden;
    golden.model = need(config::read_model_config(directory, diagnostics), diagnostics);
    golden.weights = need(config::read_checkpoint(directory + "/model.safetensors", diagnostics), diagnostics);
    const config::TokenShape shape{batch, length, golden.model.vocab};
    golden.tokens = {batch, length,
                     need(config::read_token_file(directory + "/input_ids.json", shape, diagnostics), diagnostics)};
    const auto logits = need(config::read_checkpoint(directory + "/logits.safetensors", diagnostics), diagnostics);
    model::Parameter whole;
    whole.name = "logits";
    whole.shape = whole.stored_shape = logits.at("logits").shape;
    golden.logits.shape = whole.shape;
    golden.logits.values.resize(static_cast<std::size_t>(tensor::element_count(whole.shape)));
    const exec::CheckpointWeights source(logits, golden.model);
    source.fill(whole, -1, exec::whole_ranges(whole.shape),
                {reinterpret_cast<std::byte*>(golden.logits.values.data()), tensor::DType::f32, whole.shape});
    return golden;
}

model::Workload f32_workload(model::Mode mode, std::int64_t tokens) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = batch;
    workload.sequence_length = tokens;
    workload.dtype = tensor::DType::f32;
    return workload;
}

exec::Comparison compare_strictly(const exec::FloatTensor& values, const exec::FloatTensor& golden) {
    exec::Comparison result = exec::compare(values, golden, {2e-5, 2e-5, 1e-5});
    for (std::size_t i = 0; i < values.values.size(); ++i) {  // without the scale that compare allows
        const float b = golden.values[i];
        result.passed = result.passed && std::abs(values.values[i] - b) <= 2e-5F + 2e-5F * std::abs(b);
    }
    return result;
}

std::string describe(const exec::Comparison& c) {
    return fmt::format("max |a-b| {:.3g}, relative rms {:.3g}, worst {}: {} for {}", c.max_absolute, c.relative_rms,
                       tensor::to_string(c.worst), c.worst_value, c.worst_reference);
}

}  // namespace

TEST_CASE("prefill on one rank gives the logits of transformers, with every provider and set of kernels") {
    for (const std::string name : models) {
        const Golden golden = read_golden(name);
        CHECK(exec::check_checkpoint(model::build_graph(golden.model, {}), golden.weights).empty());
        for (const auto provider : {backend::ProviderChoice::local, backend::ProviderChoice::automatic}) {
            plan::Job job = test::job_of(golden.model, f32_workload(model::Mode::prefill, length));
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
                const auto result = compare_strictly(exec::gather_logits(*world, plan, executor), golden.logits);
                CHECK_MESSAGE(result.passed, name << ", " << backend::to_string(plan.provider.kind) << ", "
                                                  << kernels::to_string(set) << ": " << describe(result));
            }
        }
    }
}

TEST_CASE("decode, token by token from an empty cache, gives the same logits") {
    for (const std::string name : models) {
        const Golden golden = read_golden(name);
        const plan::Plan plan =
            test::plan_of(test::job_of(golden.model, f32_workload(model::Mode::decode, length - 1)));
        const auto world = comm::make_self_world();
        const auto groups = world->groups(plan.mesh.refined());
        const auto kernels = kernels::make_kernels(kernels::KernelSet::reference);
        exec::Allocator allocator(true);
        const exec::CheckpointWeights weights(golden.weights, golden.model);
        exec::Executor executor(plan, *groups, *kernels, weights, allocator);
        exec::FloatTensor logits{golden.logits.shape, std::vector<float>(golden.logits.values.size())};
        for (std::int64_t t = 0; t < length; ++t) {
            executor.run(golden.tokens.slice({t, t + 1}), t);
            exec::put_tokens(exec::gather_logits(*world, plan, executor), t, logits);
        }
        const auto result = compare_strictly(logits, golden.logits);
        CHECK_MESSAGE(result.passed, name << ": " << describe(result));
    }
}
