// Small models by their configs, for the tests of this room.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "model/graph.h"
#include "model/json_config.h"
#include "model/op_rule.h"

namespace shardplan::model {

/// A llama with `changes` (a JSON object) merged in; null removes a key, "=null" makes it null.
inline Json small_config(const std::string& changes = "{}") {
    Json config = Json::parse(R"({"model_type": "llama", "hidden_size": 48, "intermediate_size": 112, "vocab_size": 112,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
        "torch_dtype": "float32"})");
    config.merge_patch(Json::parse(changes));
    for (auto& [key, value] : config.items()) {
        if (value == "=null") {
            value = nullptr;
        }
    }
    return config;
}

inline ModelSpec read_ok(const Json& config) {
    diag::Diagnostics diagnostics;
    const auto model = read_model(to_config(config), diagnostics);
    for (const diag::Diagnostic& d : diagnostics.all()) {
        INFO(d.code << " " << d.pointer << " " << d.message);
        CHECK(d.severity != diag::Severity::error);
    }
    REQUIRE(model.has_value());
    return *model;
}

inline ModelSpec small_model(const std::string& changes = "{}") {
    return read_ok(small_config(changes));
}

inline std::vector<diag::Diagnostic> read_errors(const Json& config) {
    diag::Diagnostics diagnostics;
    const auto model = read_model(to_config(config), diagnostics);
    CHECK_FALSE(model.has_value());
    CHECK(diagnostics.has_errors());
    return diagnostics.all();
}

inline const TensorInfo& tensor_of(const Block& block, TensorId id) {
    return block.tensors.at(static_cast<std::size_t>(id));
}

inline const Op& op_of(const Block& block, const std::string& name) {
    for (const Op& op : block.ops) {
        if (op.name == name) {
            return op;
        }
    }
    throw std::runtime_error("no op " + name);
}

/// As an einsum, "bsi,oi->bso sums:i whole:": a dimension that takes only the leading part of its factor's axes has a
/// prime.
inline std::string text_of(const OpRule& rule) {
    const auto dims = [&](const std::vector<DimFactor>& operand) {
        std::string text;
        for (const DimFactor& dim : operand) {
            text +=
                std::string(rule.factors[static_cast<std::size_t>(dim.factor)].name) + (dim.shared_prefix ? "'" : "");
        }
        return text;
    };
    std::string text;
    for (const auto& input : rule.inputs) {
        text += (text.empty() ? "" : ",") + dims(input);
    }
    text += "->" + dims(rule.output) + " sums:";
    for (const Factor& factor : rule.factors) {
        text += factor.kind == FactorKind::contracting ? std::string(factor.name) : "";
    }
    text += " whole:";
    for (const Factor& factor : rule.factors) {
        text += factor.kind == FactorKind::whole ? std::string(factor.name) : "";
    }
    return text;
}

}  // namespace shardplan::model
