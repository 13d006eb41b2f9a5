#include "plan/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/spelling.h"
#include "plan/checks/size_hints.h"

namespace shardplan::plan {

using partition::ResolvedEntry;
using partition::SpecEntry;

std::string describe_axes(const SpecEntry& axes, const mesh::Mesh& mesh) {
    std::string text;
    std::int64_t product = 1;
    for (const std::string& name : axes) {
        const std::int64_t size = mesh.size(*mesh.find(name));
        product *= size;
        text += fmt::format("{}{}={}", text.empty() ? "" : " * ", name, size);
    }
    return axes.size() > 1 ? fmt::format("{} = {}", text, product) : text;
}

std::string divisors_text(std::int64_t n) {
    constexpr std::size_t most = 24;
    constexpr std::int64_t largest_searched = 4'000'000;
    std::vector<std::int64_t> found = divisors(n, largest_searched);
    const bool cut = found.size() > most;
    found.resize(std::min(found.size(), most));
    return fmt::format("{}{}", fmt::join(found, ", "), cut ? ", ..." : "");
}

std::int64_t Placer::size_of(const SpecEntry& axes) const {
    std::int64_t product = 1;
    for (const std::string& name : axes) {
        product *= job_.mesh.size(*job_.mesh.find(name));
    }
    return product;
}

std::string Placer::pointer_of(const ResolvedEntry& entry) const {
    std::string pointer = entry.pointer;
    for (const std::string& name : entry.axes) {
        const auto axis = job_.mesh.find(name);
        if (entry.pointer.empty() && axis && (pointer.empty() || job_.mesh.size(*axis) > 1)) {
            pointer = "/mesh/axes/" + diag::escape_pointer(name);
        }
    }
    return pointer;
}

ResolvedEntry Placer::origin_of(const ResolvedEntry& entry, const std::string& axis) const {
    if (job_.partition_axis.compat() == partition::Compat::seed) {
        return entry;
    }
    const ResolvedEntry first = job_.partition_axis.value("fully_sharded_data_parallel_axis");
    const bool storage = entry.field == "weight_storage_axis";
    const ResolvedEntry second = job_.partition_axis.value(storage ? "sequence_parallel_axis" : "data_parallel_axis");
    const bool joined = entry.field == "batch_axis" || entry.field == "decode_batch_axis" || storage;
    if (!joined || (entry.given && entry.pointer != first.pointer)) {
        return entry;
    }
    for (const ResolvedEntry& base : {first, second}) {
        if (base.given && std::find(base.axes.begin(), base.axes.end(), axis) != base.axes.end()) {
            return base;
        }
    }
    return entry;
}

void Placer::report_unknown(const ResolvedEntry& entry, const std::string& name, const std::string& consequence) {
    if (!first_time("unknown " + name + entry.field)) {
        return;
    }
    std::vector<std::string> known;
    for (const mesh::Axis& axis : job_.mesh.axes()) {
        known.push_back(axis.name);
    }
    const bool drop = job_.options.indivisible == Indivisible::drop;
    const std::string near = base::nearest_word(name, known);
    diagnostics_.report(drop ? "SP4004" : "SP4002",
                        fmt::format("{} names axis '{}', which the mesh does not have{}", entry.field, name,
                                    drop ? ": " + consequence : ""),
                        entry.pointer,
                        fmt::format("axes of the mesh: {}{}", fmt::join(known, ", "),
                                    near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

void Placer::check_names() {
    const partition::PartitionAxis& fields = job_.partition_axis;
    for (const partition::FieldInfo& info : partition::PartitionAxis::fields(fields.compat())) {
        const ResolvedEntry field = fields.value(info.name);
        if (!field.given || field.field != info.name) {
            continue;
        }
        for (const std::string& name : field.axes) {
            if (!job_.mesh.find(name)) {
                report_unknown(origin_of(field, name), name, "the field cuts nothing in this job");
            }
        }
    }
}

SpecEntry Placer::existing_axes(const ResolvedEntry& entry, const std::string& tensor) {
    SpecEntry result;
    for (const std::string& name : entry.axes) {
        if (stages_over_ && name == *stages_over_) {
            if (first_time("pipeline " + entry.field)) {
                diagnostics_.report("SP3005",
                                    fmt::format("{} names axis '{}', along which the layers are dealt out to stages",
                                                entry.field, name),
                                    entry.given || !job_.pipeline ? pointer_of(entry) : "/pipeline/axis",
                                    "a pipeline axis cuts no tensor; use another axis");
            }
            continue;
        }
        if (job_.mesh.find(name)) {
            result.push_back(name);
            continue;
        }
        const ResolvedEntry origin = origin_of(entry, name);
        if (!origin.given) {
            if (first_time("missing " + name)) {
                notes_.push_back(
                    fmt::format("axis '{}' (default of {}) is not in the mesh: counts as size 1", name, entry.field));
            }
            continue;
        }
        report_unknown(origin, name, fmt::format("the entry of {} becomes None", tensor));
        if (job_.options.indivisible == Indivisible::drop) {
            return {};
        }
    }
    return result;
}

void Placer::refuse_duplicates(const std::string& tensor, const std::vector<DimRequest>& dims,
                               std::vector<SpecEntry>& entries) {
    std::vector<std::pair<std::string, std::size_t>> seen;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        SpecEntry unique;
        for (const std::string& name : entries[i]) {
            const auto it = std::find_if(seen.begin(), seen.end(), [&](const auto& s) { return s.first == name; });
            if (it == seen.end()) {
                seen.emplace_back(name, i);
                unique.push_back(name);
                continue;
            }
            const ResolvedEntry one = origin_of(dims[it->second].entry, name);
            const ResolvedEntry two = origin_of(dims[i].entry, name);
            if (it->second == i) {
                if (first_time(fmt::format("twice {} {}", name, two.field))) {
                    diagnostics_.report("SP4001",
                                        fmt::format("axis '{}' stands twice in {}, which cuts dimension {} ({}) of {}",
                                                    name, two.field, i, dims[i].dimension, tensor),
                                        two.pointer, "write each axis once");
                }
                continue;
            }
            if (first_time(fmt::format("duplicate {} {} {}", name, one.field, two.field))) {
                diagnostics_.report(
                    "SP4001",
                    fmt::format(
                        "axis '{}' is used twice in {}: by {} in dimension {} ({}) and by {} in dimension {} ({})",
                        name, tensor, one.field, it->second, dims[it->second].dimension, two.field, i,
                        dims[i].dimension),
                    two.given ? two.pointer : one.pointer, "a mesh axis may cut at most one dimension of a tensor");
            }
        }
        entries[i] = unique;
    }
}

void Placer::check_divisible(const std::string& tensor, int index, const DimRequest& dim, SpecEntry& axes) {
    const std::int64_t product = size_of(axes);
    if (dim.dimension == "vocab_size") {
        vocabulary_parts_ = base::checked_mul(vocabulary_parts_ / std::gcd(vocabulary_parts_, product), product);
    }
    if (dim.units % product == 0) {
        return;
    }
    const bool drop = job_.options.indivisible == Indivisible::drop;
    const bool one_token = dim.dimension == "sequence_length" && job_.workload.mode == model::Mode::decode;
    if (!dim.reported && first_time(fmt::format("divide {} {} {}", dim.dimension, dim.units, fmt::join(axes, ",")))) {
        diagnostics_.report(drop ? "SP4004" : "SP4003",
                            fmt::format("{} {} is not a multiple of {} {} (remainder {}): dimension {} of {}{}",
                                        one_token ? "query length" : dim.dimension, dim.units, dim.entry.field,
                                        describe_axes(axes, job_.mesh), dim.units % product, index, tensor,
                                        drop ? "; the entry becomes None" : ""),
                            pointer_of(dim.entry), size_hint(job_, dim, axes, product, cache_grows_));
    }
    axes.clear();
}

partition::PartitionSpec Placer::place(const std::string& tensor, const std::vector<DimRequest>& dims) {
    partition::PartitionSpec spec;
    for (const DimRequest& dim : dims) {
        spec.entries.push_back(existing_axes(dim.entry, tensor));
    }
    refuse_duplicates(tensor, dims, spec.entries);
    for (std::size_t i = 0; i < dims.size(); ++i) {
        check_divisible(tensor, static_cast<int>(i), dims[i], spec.entries[i]);
    }
    return spec;
}

}  // namespace shardplan::plan
