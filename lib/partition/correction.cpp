#include "partition/correction.h"

#include <algorithm>
#include <stdexcept>

#include "base/checked.h"

namespace shardplan::partition {
namespace {

void fit_to_rank(std::vector<SpecEntry>& entries, const tensor::Shape& shape, std::vector<CorrectionStep>& steps) {
    const std::size_t rank = shape.size();
    if (entries.size() < rank) {
        const int dim = static_cast<int>(entries.size());
        steps.push_back({CorrectionReason::padded, dim, shape[entries.size()], {}, 0, ""});
    } else if (entries.size() > rank) {
        steps.push_back({CorrectionReason::truncated, static_cast<int>(rank), 0, entries[rank], 0, ""});
    }
    entries.resize(rank);
}

/// The step that drops the entry, or nullopt when it can stay.
std::optional<CorrectionStep> judge_entry(const SpecEntry& entry, int dim, std::int64_t size, const mesh::Mesh& mesh) {
    std::int64_t product = 1;
    for (const std::string& name : entry) {
        const std::optional<mesh::AxisId> axis = mesh.find(name);
        if (!axis) {
            return CorrectionStep{CorrectionReason::missing_axis, dim, size, entry, 0, name};
        }
        product = base::checked_mul(product, mesh.size(*axis));
    }
    if (size % product != 0) {
        return CorrectionStep{CorrectionReason::not_divisible, dim, size, entry, product, ""};
    }
    return std::nullopt;
}

}  // namespace

std::string_view to_string(CorrectionReason reason) {
    switch (reason) {
        case CorrectionReason::padded: return "padded";
        case CorrectionReason::truncated: return "truncated";
        case CorrectionReason::missing_axis: return "missing axis";
        case CorrectionReason::not_divisible: return "not divisible";
        case CorrectionReason::unconstrained: return "unconstrained";
    }
    throw std::invalid_argument("not a reason of a correction");
}

std::vector<std::string> duplicate_axes(const PartitionSpec& spec) {
    std::vector<std::string> seen;
    std::vector<std::string> result;
    for (const SpecEntry& entry : spec.entries) {
        for (const std::string& name : entry) {
            if (std::find(seen.begin(), seen.end(), name) == seen.end()) {
                seen.push_back(name);
            } else if (std::find(result.begin(), result.end(), name) == result.end()) {
                result.push_back(name);
            }
        }
    }
    return result;
}

Correction correct_spec(const PartitionSpec& spec, const tensor::Shape& shape, const mesh::Mesh& mesh) {
    Correction result;
    if (mesh.axis_count() == 0) {
        result.error = CorrectionError::no_mesh;
        return result;
    }
    if (spec.entries.empty()) {
        return result;
    }
    std::vector<SpecEntry> entries = spec.entries;
    fit_to_rank(entries, shape, result.steps);
    for (std::size_t dim = 0; dim < entries.size(); ++dim) {
        if (const auto step = judge_entry(entries[dim], static_cast<int>(dim), shape[dim], mesh)) {
            entries[dim].clear();
            result.steps.push_back(*step);
        }
    }
    if (std::all_of(entries.begin(), entries.end(), [](const SpecEntry& entry) { return entry.empty(); })) {
        result.steps.push_back({CorrectionReason::unconstrained, -1, 0, {}, 0, ""});
        entries.clear();
    }
    result.spec.entries = std::move(entries);
    result.duplicates = duplicate_axes(result.spec);
    if (!result.duplicates.empty()) {
        result.error = CorrectionError::duplicate_axis;
    }
    return result;
}

}  // namespace shardplan::partition
