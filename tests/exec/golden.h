// The tiny models with the logits of Hugging Face transformers (tests/data/logits), one sequence of tokens for each
// row.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "config/safetensors.h"
#include "config/token_file.h"
#include "exec/checkpoint_weights.h"
#include "exec/executor.h"
#include "exec/models.h"
#include "exec/verify.h"

namespace shardplan::test {

inline const char* const golden_models[] = {"bloom-alibi",    "cohere",
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

inline constexpr std::int64_t golden_batch = 2;
inline constexpr std::int64_t golden_length = 12;

inline std::string golden_directory(const std::string& name) {
    return std::string(SHARDPLAN_SOURCE_DIR "/tests/data/logits/") + name;
}

template <typename T>
T need(std::optional<T> value, const diag::Diagnostics& diagnostics) {
    if (!value || diagnostics.has_errors()) {
        throw std::runtime_error(text_of(diagnostics));
    }
    return *value;
}

struct Golden {
    model::ModelSpec model;
    tensor::Checkpoint weights;
    exec::TokenBatch tokens;
    exec::FloatTensor logits;
};

inline Golden read_golden(const std::string& name) {
    const std::string directory = golden_directory(name);
    diag::Diagnostics diagnostics;
    Golden golden;
    golden.model = need(config::read_model_config(directory, diagnostics), diagnostics);
    golden.weights = need(config::read_checkpoint(directory + "/model.safetensors", diagnostics), diagnostics);
    const config::TokenShape shape{golden_batch, golden_length, golden.model.vocab};
    golden.tokens = {golden_batch, golden_length,
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

inline model::Workload f32_workload(model::Mode mode, std::int64_t tokens) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = golden_batch;
    workload.sequence_length = tokens;
    workload.dtype = tensor::DType::f32;
    return workload;
}

inline exec::Comparison compare_strictly(const exec::FloatTensor& values, const exec::FloatTensor& golden) {
    exec::Comparison result = exec::compare(values, golden, {2e-5, 2e-5, 1e-5});
    for (std::size_t i = 0; i < values.values.size(); ++i) {  // without the scale that compare allows
        const float b = golden.values[i];
        result.passed = result.passed && std::abs(values.values[i] - b) <= 2e-5F + 2e-5F * std::abs(b);
    }
    return result;
}

inline std::string describe(const exec::Comparison& c) {
    return fmt::format("max |a-b| {:.3g}, relative rms {:.3g}, worst {}: {} for {}", c.max_absolute, c.relative_rms,
                       tensor::to_string(c.worst), c.worst_value, c.worst_reference);
}

/// The 16 tokens that transformers generates greedily after row 0; empty where there are none.
inline std::vector<std::int32_t> golden_greedy(const std::string& name) {
    const std::string path = golden_directory(name) + "/greedy.json";
    std::vector<std::int32_t> ids;
    if (!std::filesystem::exists(path)) {
        return ids;
    }
    std::ifstream in(path);
    in.ignore();  // '['
    for (std::int32_t id = 0; in >> id; in.ignore()) {
        ids.push_back(id);
    }
    return ids;
}

/// A run that generates 16 tokens after row 0 of the golden tokens.
inline exec::RunReport generate_golden(const Golden& golden, plan::Job job, comm::World& world) {
    job.workload.mode = model::Mode::decode;
    job.workload.sequence_length = golden_length;
    job.workload.cache_length = 32;
    exec::RunOptions options;
    options.checkpoint = golden.weights;
    options.generate = true;
    options.steps = 16;
    options.threads = 1;
    options.tokens = golden.tokens;
    std::copy_n(golden.tokens.ids.begin(), golden_length, options.tokens->ids.begin() + golden_length);
    const plan::Plan plan = plan_of(job);
    return exec::run_and_verify(plan, reference_of(job, exec::tokens_needed(plan, options)), world, options);
}

}  // namespace shardplan::test
