#include "plan/layer_rules.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace shardplan::plan {
namespace {

/// Index of the first matching rule of every parameter of a block, in one of its layers; -1 = none.
std::vector<int> matches(const model::Graph& graph, const model::Block& block, int layer,
                         const partition::RuleTable& rules) {
    std::vector<int> result;
    for (const model::TensorInfo& tensor : block.tensors) {
        if (tensor.kind == model::TensorKind::parameter) {
            const model::Parameter& parameter = graph.parameters[static_cast<std::size_t>(tensor.parameter)];
            const auto match = rules.match(model::example_name(parameter, layer));
            result.push_back(match ? match->index : -1);
        }
    }
    return result;
}

/// A copy of the block for some of its layers, with parameters of its own.
model::Block copy_for(model::Graph& graph, const model::Block& block, std::vector<int> layers, std::size_t number) {
    model::Block copy = block;
    copy.name = fmt::format("{}.rules{}", block.name, number);
    copy.layers = std::move(layers);
    for (model::TensorInfo& tensor : copy.tensors) {
        if (tensor.kind == model::TensorKind::parameter) {
            graph.parameters.push_back(graph.parameters[static_cast<std::size_t>(tensor.parameter)]);
            tensor.parameter = static_cast<int>(graph.parameters.size()) - 1;
        }
    }
    return copy;
}

}  // namespace

void split_layers_by_rules(model::Graph& graph, const partition::RuleTable& rules) {
    const std::size_t count = graph.blocks.size();
    for (std::size_t b = 0; b < count; ++b) {
        std::map<std::vector<int>, std::vector<int>> groups;
        for (const int layer : graph.blocks[b].layers) {
            groups[matches(graph, graph.blocks[b], layer, rules)].push_back(layer);
        }
        if (groups.size() < 2) {
            continue;
        }
        const model::Block original = graph.blocks[b];
        std::map<int, int> block_of_layer;
        std::size_t number = 0;
        for (auto& [key, layers] : groups) {
            const std::size_t target = number == 0 ? b : graph.blocks.size();
            for (const int layer : layers) {
                block_of_layer[layer] = static_cast<int>(target);
            }
            if (number == 0) {
                graph.blocks[b].layers = std::move(layers);
            } else {
                graph.blocks.push_back(copy_for(graph, original, std::move(layers), number));
            }
            ++number;
        }
        for (model::BlockUse& use : graph.sequence) {
            if (use.block == static_cast<int>(b) && use.layer >= 0) {
                use.block = block_of_layer[use.layer];
            }
        }
    }
}

}  // namespace shardplan::plan
