// The single moves a reshard is made of: all steps that may lead from one layout towards another.
#pragma once

#include <vector>

#include "partition/reshard.h"

namespace shardplan::partition {

struct Move {
    ReshardStep step;
    double wire_per_byte = 0.0;  ///< as ReshardPath::wire_per_byte
};

/// Moves from `current` that can be part of a shortest path to `target`. Never empty unless current == target.
std::vector<Move> reshard_moves(const mesh::Mesh& mesh, const Layout& current, const Layout& target);

}  // namespace shardplan::partition
