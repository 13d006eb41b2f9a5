#include "plan/kv_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "plan/checks/size_hints.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;

namespace {

/// Where the running product of the axes passes `kv_heads`: the axis and the size at which to split it.
bool add_split(const Job& job, const partition::SpecEntry& axes, std::int64_t kv_heads,
               std::map<std::string, std::vector<std::int64_t>>& splits) {
    std::int64_t before = 1;
    for (const std::string& name : axes) {
        const std::int64_t size = job.mesh.size(*job.mesh.find(name));
        if (kv_heads % (before * size) == 0) {
            before *= size;
            continue;
        }
        const std::int64_t cut = kv_heads / before;
        if (cut == 1) {
            return true;
        }
        if (kv_heads % before != 0 || size % cut != 0) {
            return false;
        }
        std::vector<std::int64_t>& cuts = splits[name];
        cuts.push_back(cut);
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        for (std::size_t i = 1; i < cuts.size(); ++i) {
            if (cuts[i] % cuts[i - 1] != 0) {
                return false;
            }
        }
        return true;
    }
    return true;
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> kv_head_splits(const Job& job, Placer& placer,
                                                                diag::Diagnostics& diagnostics) {
    std::map<std::string, std::vector<std::int64_t>> splits;
    const std::int64_t kv_heads = job.model.attention.kv_heads;
    const std::int64_t heads = job.model.attention.heads;
    std::vector<Phase> phases = {Phase::train};
    if (partition::is_generation(phase_of(job))) {
        phases.push_back(phase_of(job));
    }
    std::set<partition::SpecEntry> refused;
    for (const Phase phase : phases) {
        const partition::ResolvedEntry entry = job.partition_axis.resolve(Semantic::kv_head, phase);
        const partition::SpecEntry axes = placer.existing_axes(entry, "key");
        const std::int64_t devices = placer.size_of(axes);
        if (kv_heads % devices == 0 || (devices % kv_heads == 0 && add_split(job, axes, kv_heads, splits))) {
            continue;
        }
        if (!refused.insert(axes).second) {
            continue;
        }
        const bool drop = job.options.indivisible == Indivisible::drop;
        diagnostics.report(drop ? "SP4004" : "SP4007",
                           fmt::format("num_key_value_heads {} can neither be cut over nor shared evenly by {} {}{}",
                                       kv_heads, entry.field, describe_axes(axes, job.mesh),
                                       drop ? "; the entry of key and value becomes None" : ""),
                           placer.pointer_of(entry),
                           fmt::format("sizes that work with {} query heads and all else that these axes cut: {}",
                                       heads, fmt::join(working_sizes(job, axes, heads, placer.cache_grows()), ", ")));
    }
    return splits;
}

mesh::AxisList dividing_prefix(const mesh::AxisList& axes, std::int64_t count, const mesh::Mesh& mesh) {
    int n = 0;
    while (n < axes.size() && count % mesh.size(axes.prefix(n + 1)) == 0) {
        ++n;
    }
    return axes.prefix(n);
}

}  // namespace shardplan::plan
