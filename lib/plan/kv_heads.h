// Key/value heads on more devices than there are heads: at which sizes mesh axes have to be split so that each device
// holds whole heads (vLLM's replication and Megatron-Core 0.16's even split end in the same placement of the
// activations).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "plan/placement.h"

namespace shardplan::plan {

/// Splits per axis name for RefinedMesh. SP4007 (strict) when the heads can neither be cut nor shared evenly.
std::map<std::string, std::vector<std::int64_t>> kv_head_splits(const Job& job, Placer& placer,
                                                                diag::Diagnostics& diagnostics);

/// The longest leading part of `axes` whose size divides `count`.
mesh::AxisList dividing_prefix(const mesh::AxisList& axes, std::int64_t count, const mesh::Mesh& mesh);

}  // namespace shardplan::plan
