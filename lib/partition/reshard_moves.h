// The single moves a reshard is made of: all steps that may lead from one layout towards another.
#pragma once

#include <vector>

#include "partition/reshard.h"

namespace shardplan::partition {

struct Move {
    ReshardStep step;
    double wire_per_byte = 0.0;  ///< as ReshardPath::wire_per_byte
};

/// Fills `moves` with those from `current` that can be part of a shortest path to `target`: none only where
/// current == target.
void reshard_moves(const mesh::Mesh& mesh, const Layout& current, const Layout& target, std::vector<Move>& moves);

}  // namespace shardplan::partition
