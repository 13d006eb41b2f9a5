#include "plan/refined_mesh.h"

#include <fmt/format.h>

#include <utility>

namespace shardplan::plan {

using mesh::AxisId;
using mesh::AxisList;

RefinedMesh::RefinedMesh(const mesh::Mesh& mesh, const std::map<std::string, std::vector<std::int64_t>>& splits)
    : original_(mesh) {
    std::vector<mesh::Axis> axes;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        const mesh::Axis& axis = mesh.axes()[static_cast<std::size_t>(i)];
        std::vector<std::int64_t> cuts;
        if (const auto it = splits.find(axis.name); it != splits.end()) {
            cuts = it->second;
        }
        cuts.push_back(axis.size);
        AxisList parts;
        std::int64_t before = 1;
        for (const std::int64_t cut : cuts) {
            parts.push_back(AxisId{static_cast<std::uint8_t>(axes.size())});
            const bool whole = cuts.size() == 1;
            axes.push_back(
                {whole ? axis.name : fmt::format("{}:({}){}", axis.name, before, cut / before), cut / before});
            parent_.push_back(i);
            lead_.push_back(before);
            before = cut;
        }
        parts_.push_back(parts);
    }
    refined_ = mesh::Mesh(std::move(axes));
}

AxisList RefinedMesh::refine(const partition::SpecEntry& entry) const {
    AxisList result;
    for (const std::string& name : entry) {
        const auto original = original_.find(name);
        if (!original) {
            result.push_back(refined_.find(name).value());  // a part of a split axis
            continue;
        }
        const AxisList& parts = parts_[static_cast<std::size_t>(mesh::index_of(*original))];
        for (int i = 0; i < parts.size(); ++i) {
            if (refined_.size(parts[i]) > 1) {
                result.push_back(parts[i]);
            }
        }
    }
    return result;
}

partition::SpecEntry RefinedMesh::names(const AxisList& axes) const {
    partition::SpecEntry result;
    for (int i = 0; i < axes.size();) {
        const int parent = parent_[static_cast<std::size_t>(mesh::index_of(axes[i]))];
        const AxisList& parts = parts_[static_cast<std::size_t>(parent)];
        if (axes.suffix_from(i).starts_with(parts)) {
            result.push_back(original_.axes()[static_cast<std::size_t>(parent)].name);
            i += parts.size();
        } else {
            result.push_back(refined_.name(axes[i]));
            ++i;
        }
    }
    return result;
}

partition::PartitionSpec RefinedMesh::spec(const partition::Layout& layout) const {
    partition::PartitionSpec spec;
    for (int d = 0; d < layout.rank; ++d) {
        spec.entries.push_back(names(layout[d]));
    }
    return spec;
}

partition::PartitionSpec RefinedMesh::spec(const partition::Layout& layout,
                                           const partition::PartitionSpec& written) const {
    partition::PartitionSpec result = spec(layout);
    for (std::size_t d = 0; d < written.entries.size(); ++d) {
        if (refine(written.entries[d]) == layout.dims[d]) {
            result.entries[d] = written.entries[d];
        }
    }
    return result;
}

}  // namespace shardplan::plan
