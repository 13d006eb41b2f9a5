// Rules that tell layers apart ("layers\.0\..*"): layers of one kind that a rule table places differently become blocks
// of their own, so that everything after this pass may treat the layers of a block alike.
#pragma once

#include "model/graph.h"
#include "partition/rules.h"

namespace shardplan::plan {

/// Splits the layer blocks of `graph` where the first matching rule of some parameter differs between their layers.
/// Parameters of split blocks are copied, so that each belongs to one block's layers.
void split_layers_by_rules(model::Graph& graph, const partition::RuleTable& rules);

}  // namespace shardplan::plan
