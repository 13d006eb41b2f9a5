// Reshard: from any layout to any other by collectives, with the fewest bytes on the wire.
// A shortest-path search over layouts (uniform cost, ties: fewer collectives). The moves are those that shard_map
// programs and GSPMD use: all-gather, reduce-scatter, all-reduce, all-to-all, collective permute and local slice. Pure
// arithmetic; knows nothing of MPI. Uses mesh/collective.h for the cost of each move.
#pragma once

#include <memory>
#include <vector>

#include "mesh/collective.h"
#include "mesh/mesh.h"
#include "partition/layout.h"

namespace shardplan::partition {

/// One collective over the group along `axes` (axes[0] major).
struct ReshardStep {
    mesh::CollectiveKind kind = mesh::CollectiveKind::slice;
    mesh::AxisList axes;
    int dim = 0;         ///< all_gather: grows; reduce_scatter, slice: is cut; all_to_all: is cut
    int concat_dim = 0;  ///< all_to_all: grows
    Layout after;
    friend bool operator==(const ReshardStep&, const ReshardStep&) = default;
};

struct ReshardPath {
    std::vector<ReshardStep> steps;
    /// Bytes each device sends (mean over devices), per byte of the whole tensor.
    double wire_per_byte = 0.0;
    int collectives = 0;  ///< steps that communicate
};

/// Finds and remembers paths on one mesh. Paths do not depend on the tensor's shape.
class Resharder {
public:
    /// Layouts that the searches of a plan may settle. Meshes with few axes need some thousands; one with 15 axes on
    /// several dimensions would need hours.
    static constexpr std::int64_t default_budget = 300'000;

    /// When the budget is used up, paths are direct (sum, gather, slice) and no longer those with the fewest bytes.
    /// The same queries in the same order give the same paths in every run.
    explicit Resharder(mesh::Mesh mesh, std::int64_t search_budget = default_budget);
    ~Resharder();
    Resharder(Resharder&&) noexcept;
    Resharder& operator=(Resharder&&) noexcept;

    const mesh::Mesh& mesh() const { return mesh_; }

    /// @pre both consistent, of one rank; to.pending is part of from.pending. nullptr when the precondition on pending
    /// does not hold: a finished value cannot become a partial sum again.
    const ReshardPath* path(const Layout& from, const Layout& to);

private:
    struct Cache;
    mesh::Mesh mesh_;
    std::unique_ptr<Cache> cache_;
};

/// What a path from one layout to the other sends at least, as ReshardPath::wire_per_byte, found without a search: only
/// all-gathers make a part grow, each by what it sends.
double least_wire_per_byte(const Layout& from, const Layout& to, const mesh::Mesh& mesh);

/// For a permute step from layout `from` to step.after: the rank whose whole block `rank` takes (may be itself).
std::int64_t permute_source(const Layout& from, const Layout& to, const mesh::Mesh& mesh, std::int64_t rank);

/// How many ranks of one group along step.axes take another rank's block.
std::int64_t permute_movers(const Layout& from, const ReshardStep& step, const mesh::Mesh& mesh);

}  // namespace shardplan::partition
