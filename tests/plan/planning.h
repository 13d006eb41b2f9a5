// Jobs by a few JSON fragments, and what a plan moves as short text.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "config/job_reader.h"
#include "plan/plan.h"

namespace shardplan::test {

/// A llama of two layers: hidden 64, 8 heads, 4 kv heads of 8, intermediate 96, vocabulary 128; two sequences of 16
/// tokens in f32. So few tokens that no weight is cheaper to move than the activations.
struct JobText {
    std::string mesh;               ///< "tp": 4
    std::string axes = {};          ///< fields of PartitionAxis
    std::string workload = {};      ///< fields, instead of the above
    std::string options = {};       ///< fields
    std::string backend = "local";  ///< a provider, or the whole object
    std::string rules = "\"derived\"";
    std::string model = {};  ///< fields that replace others

    std::string json() const {
        return fmt::format(
            R"({{"model": {{"vocab_size": 128, "torch_dtype": "float32", "max_position_embeddings": 8192, {}}},
                "mesh": {{"axes": {{{}}}}}, "partition_axis": {{{}}}, "backend": {}, "partition_rules": {},
                "options": {{{}}}, "workload": {{"dtype": "f32", {}}}}})",
            model.empty() ? R"("model_type": "llama", "hidden_size": 64, "num_attention_heads": 8,
                "num_hidden_layers": 2, "num_key_value_heads": 4, "intermediate_size": 96,
                "tie_word_embeddings": false)"
                          : model,
            mesh, axes, backend.starts_with('{') ? backend : fmt::format("\"{}\"", backend), rules, options,
            workload.empty() ? R"("batch_size": 2, "sequence_length": 16)" : workload);
    }
};

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct Planned {
    std::optional<plan::Plan> plan;
    diag::Diagnostics diagnostics;

    /// The first diagnostic with this code.
    const diag::Diagnostic& first(const std::string& code) const {
        const auto& all = diagnostics.all();
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.code == code; });
        if (found == all.end()) {
            throw std::runtime_error("no diagnostic " + code + "\n" + text());
        }
        return *found;
    }
    std::string text() const {
        std::string text;
        for (const diag::Diagnostic& d : diagnostics.all()) {
            text += fmt::format("{} {} at {}; {}\n", d.code, d.message, d.pointer, d.hint);
        }
        return text;
    }
};

inline plan::Job job_of(const JobText& text) {
    diag::Diagnostics diagnostics;
    const auto job = config::read_job({"test", text.json(), ""}, {}, diagnostics);
    for (const diag::Diagnostic& d : diagnostics.all()) {
        INFO(d.code << " " << d.message << " at " << d.pointer);
        REQUIRE(d.severity != diag::Severity::error);
    }
    return job.value();
}

inline Planned try_plan(const JobText& text) {
    Planned result;
    result.plan = plan::make_plan(job_of(text), result.diagnostics);
    return result;
}

inline plan::Plan plan_of(const JobText& text) {
    const Planned result = try_plan(text);
    INFO(result.text());
    REQUIRE(result.plan.has_value());
    return *result.plan;
}

inline const plan::BlockPlan& block_of(const plan::Plan& plan, const std::string& name) {
    for (const plan::BlockPlan& block : plan.blocks) {
        if (block.name == name) {
            return block;
        }
    }
    throw std::runtime_error("no block " + name);
}

/// "all-reduce tp o_proj.out; ...": kind, axes and what goes in; slices, which move nothing, are left out.
inline std::string moves(const plan::BlockPlan& block) {
    std::string text;
    for (const plan::Step& step : block.steps) {
        if (step.collective && step.collective->kind != mesh::CollectiveKind::slice) {
            std::string name = block.values[static_cast<std::size_t>(step.collective->input)].name;
            if (const std::size_t layer = name.find("{}."); layer != std::string::npos) {
                name = name.substr(layer + 3);
            }
            text += fmt::format("{}{} {} {}", text.empty() ? "" : "; ", mesh::to_string(step.collective->kind),
                                fmt::join(step.collective->names, ","), name);
        }
    }
    return text;
}

inline const plan::StoredTensor& stored(const plan::Plan& plan, const std::string& part_of_name) {
    for (const plan::StoredTensor& tensor : plan.stored) {
        if (tensor.name.find(part_of_name) != std::string::npos) {
            return tensor;
        }
    }
    throw std::runtime_error("no tensor " + part_of_name);
}

inline std::string spec(const plan::Plan& plan, const std::string& part_of_name) {
    return partition::to_string(stored(plan, part_of_name).spec);
}

}  // namespace shardplan::test
