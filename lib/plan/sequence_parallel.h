// Sequence-parallel attention: where a mesh axis cuts both queries and keys of a prefill, each device has the queries
// of its own tokens and needs the keys of others. Which ways there are (CpCommType), when each is possible, and how
// often a ring must pass its blocks on.
#pragma once

#include <string>

#include "plan/activation_specs.h"
#include "plan/candidates.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// The refined axes that cut the sequence dimension.
struct SequenceAxes {
    mesh::AxisList queries;
    mesh::AxisList keys;
    mesh::AxisList heads;  ///< of the queries

    /// Those that cut both; empty: every device has all keys that its queries need, or none of the queries is cut.
    mesh::AxisSet shared() const { return queries.set() & keys.set(); }
};

/// Of an attention op; empty lists for other ops and for attention over a cache.
SequenceAxes sequence_axes(const model::Op& op, const model::Block& block, ActivationSpecs& asks);

/// The attention op of a block with shared axes; nullptr when there is none.
const model::Op* sequence_parallel_attention(const model::Block& block, ActivationSpecs& asks);

/// Why the attention cannot work in this way ("" when it can), with the values that contradict it.
/// @pre axes.shared() is not empty
std::string refusal(CpCommType type, const SequenceAxes& axes, std::int64_t heads, const RefinedMesh& mesh);

/// Does a candidate for the attention work in this way? Any does when nothing is shared, or for automatic.
bool is_way(CpCommType type, const SequenceAxes& axes, const model::OpRule& rule, const Candidate& candidate);

/// Ulysses: the layout [b, s, h, d] of queries and output with the shared axes on the heads, behind those they have.
partition::Layout heads_for_sequence(const SequenceAxes& axes);

/// How often the blocks of a ring over the key axes go on, so that every query meets all keys it sees: n - 1, fewer
/// with a window that ends before. `length`: of the sequence.
std::int64_t ring_passes(const SequenceAxes& axes, std::int64_t window, std::int64_t length, const TokenOrder& order,
                         const mesh::Mesh& mesh);

}  // namespace shardplan::plan
