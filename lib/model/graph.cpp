#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/checked.h"
#include "model/graph.h"

namespace shardplan::model {
namespace {

constexpr std::string_view expert_mark = "{expert}";

bool uses(const Block& block, int parameter) {
    return std::any_of(block.tensors.begin(), block.tensors.end(),
                       [&](const TensorInfo& t) { return t.parameter == parameter; });
}

}  // namespace

std::string_view to_string(OpKind kind) {
    constexpr std::array<std::string_view, 23> names = {"embedding",   "position_embedding",
                                                        "norm",        "linear",
                                                        "bias_add",    "split_heads",
                                                        "merge_heads", "rope",
                                                        "attention",   "cache_write",
                                                        "add",         "glu",
                                                        "activation",  "scale",
                                                        "softcap",     "clip",
                                                        "route",       "experts",
                                                        "gate_rows",   "temperature",
                                                        "take",        "join",
                                                        "head_linear"};
    return names[static_cast<std::size_t>(kind)];
}

std::vector<int> layers_of(const Graph& graph, int parameter) {
    std::vector<int> layers;
    bool outside = false;
    for (const Block& block : graph.blocks) {
        if (!uses(block, parameter)) {
            continue;
        }
        outside = outside || block.layers.empty();
        layers.insert(layers.end(), block.layers.begin(), block.layers.end());
    }
    std::sort(layers.begin(), layers.end());
    return outside ? std::vector<int>{-1} : layers;
}

std::int64_t parameter_count(const Graph& graph) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
        const auto copies = static_cast<std::int64_t>(layers_of(graph, static_cast<int>(i)).size());
        const std::int64_t elements = tensor::element_count(without_padding(graph.parameters[i]).shape);
        total = base::checked_add(total, base::checked_mul(copies, elements));
    }
    return total;
}

Parameter without_padding(Parameter parameter) {
    parameter.shape.front() -= parameter.padding;
    parameter.padding = 0;
    return parameter;
}

std::string name_in_layer(std::string_view pattern, int layer) {
    const std::size_t at = pattern.find("{}");
    if (at == std::string_view::npos) {
        return std::string(pattern);
    }
    return fmt::format("{}{}{}", pattern.substr(0, at), layer, pattern.substr(at + 2));
}

bool is_stored_per_expert(const Parameter& parameter) {
    return parameter.name.find(expert_mark) != std::string::npos;
}

Parameter part_of_expert(const Parameter& parameter, std::int64_t expert) {
    Parameter part = parameter;
    part.name.replace(part.name.find(expert_mark), expert_mark.size(), std::to_string(expert));
    part.kind = parameter.kind == ParameterKind::expert_row ? ParameterKind::row_linear : ParameterKind::column_linear;
    part.shape.erase(part.shape.begin());
    return part;
}

std::string example_name(const Parameter& parameter, int layer) {
    const std::string pattern = is_stored_per_expert(parameter) ? part_of_expert(parameter, 0).name : parameter.name;
    return name_in_layer(pattern, layer);
}

std::vector<Parameter> stored_parts(const Parameter& parameter) {
    if (!is_stored_per_expert(parameter)) {
        return {parameter};
    }
    std::vector<Parameter> parts;
    for (std::int64_t expert = 0; expert < parameter.shape.front(); ++expert) {
        parts.push_back(part_of_expert(parameter, expert));
    }
    return parts;
}

}  // namespace shardplan::model
