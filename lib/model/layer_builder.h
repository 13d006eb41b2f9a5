// Builds the block of one kind of decoder layer: attention and MLP with their norms, in the layout of the family.
#pragma once

#include <string>
#include <vector>

#include "model/block_builder.h"

namespace shardplan::model {

/// The block shared by `layers`, which all are of the kind `layer`. New parameters are appended to `parameters`.
/// `absorb`: see build_graph.
Block build_layer(const ModelSpec& model, const LayerSpec& layer, std::string name, std::vector<int> layers,
                  const Workload& workload, bool absorb, std::vector<Parameter>& parameters);

}  // namespace shardplan::model
