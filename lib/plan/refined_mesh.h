// The mesh of a job with axes split where fewer key/value heads than devices need it: tp=16 with 8 kv heads becomes
// tp = (8, 2), kv heads cut over the first part and replicated over the second. Ranks do not move: the parts of an axis
// are neighbours in its place. Everything after resolving the specs works on the refined mesh.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "partition/layout.h"
#include "partition/partition_spec.h"

namespace shardplan::plan {

class RefinedMesh {
public:
    RefinedMesh() = default;
    /// `splits`: per axis name the leading sizes at which it is cut, ascending, each dividing the next and the axis.
    RefinedMesh(const mesh::Mesh& mesh, const std::map<std::string, std::vector<std::int64_t>>& splits);

    const mesh::Mesh& original() const { return original_; }
    const mesh::Mesh& refined() const { return refined_; }

    /// The refined axes of an original axis, major first.
    const mesh::AxisList& parts(mesh::AxisId original) const {
        return parts_[static_cast<std::size_t>(mesh::index_of(original))];
    }
    /// Refined axes of a spec entry, those of size 1 left out: they cut nothing.
    /// Names are of whole axes or of parts, as names() gives them; others throw std::bad_optional_access.
    mesh::AxisList refine(const partition::SpecEntry& entry) const;

    /// Axis names for printing: whole axes by name, parts as Shardy writes sub-axes: "tp:(1)8" = 8 devices of tp behind
    /// a leading size of 1.
    partition::SpecEntry names(const mesh::AxisList& axes) const;
    partition::PartitionSpec spec(const partition::Layout& layout) const;
    /// `spec` as written where `layout` has all of its axes (size-1 axes included), else what the layout has.
    partition::PartitionSpec spec(const partition::Layout& layout, const partition::PartitionSpec& written) const;

private:
    mesh::Mesh original_;
    mesh::Mesh refined_;
    std::vector<mesh::AxisList> parts_;
    std::vector<int> parent_;         ///< per refined axis: index of the original axis
    std::vector<std::int64_t> lead_;  ///< per refined axis: product of the parts before it
};

}  // namespace shardplan::plan
