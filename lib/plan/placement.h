// From the names in a PartitionSpec to a Layout: which axes exist, no axis twice, every dimension divisible. What does
// not fit is an error (strict) or dropped with a diagnostic (drop); each finding is reported once, however many tensors
// share it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "partition/layout.h"
#include "partition/partition_axis.h"
#include "plan/job.h"
#include "plan/refined_mesh.h"

namespace shardplan::plan {

/// One dimension to place.
struct DimRequest {
    partition::ResolvedEntry entry;
    std::string dimension;   ///< name for messages: "num_attention_heads"
    std::int64_t units = 1;  ///< what the axes must divide: heads of a flat heads*head_dim dimension
    bool reported = false;   ///< that they do not was said before (key/value heads); the entry still becomes None
};

class Placer {
public:
    Placer(const Job& job, diag::Diagnostics& diagnostics) : job_(job), diagnostics_(diagnostics) {}

    /// The axis of a pipeline, which cuts no tensor: naming it is an error.
    void set_pipeline_axis(std::optional<std::string> axis) { stages_over_ = std::move(axis); }

    /// The axes of an entry that the mesh has. Missing ones: of a default, counted as 1 (a note); given, SP4002 or
    /// dropped.
    partition::SpecEntry existing_axes(const partition::ResolvedEntry& entry, const std::string& tensor);

    /// SP4002 (or SP4004) for fields that the job gives and nothing of it asks for: their axes must exist as well.
    void check_names();

    /// Entries after all checks, as names of the original mesh.
    partition::PartitionSpec place(const std::string& tensor, const std::vector<DimRequest>& dims);

    /// The cache length is the planner's: other sizes would have another, so that hints need not suit it.
    void let_cache_grow() { cache_grows_ = true; }
    bool cache_grows() const { return cache_grows_; }

    /// Where a finding about `entry` belongs: its field when given, else the mesh axis whose size does not suit.
    std::string pointer_of(const partition::ResolvedEntry& entry) const;

    /// Product of the sizes of axes that exist.
    std::int64_t size_of(const partition::SpecEntry& axes) const;

    const std::vector<std::string>& notes() const { return notes_; }

    /// The number that the vocabulary must be a multiple of for all that was placed so far.
    std::int64_t vocabulary_parts() const { return vocabulary_parts_; }

private:
    /// The field that brought `axis` into `entry`: of a default that joins two base names (compat current) the base
    /// name that the job gives.
    partition::ResolvedEntry origin_of(const partition::ResolvedEntry& entry, const std::string& axis) const;
    void report_unknown(const partition::ResolvedEntry& entry, const std::string& name, const std::string& consequence);
    void refuse_duplicates(const std::string& tensor, const std::vector<DimRequest>& dims,
                           std::vector<partition::SpecEntry>& entries);
    void check_divisible(const std::string& tensor, int index, const DimRequest& dim, partition::SpecEntry& axes);
    bool first_time(const std::string& key) { return seen_.insert(key).second; }

    const Job& job_;
    diag::Diagnostics& diagnostics_;
    std::set<std::string> seen_;
    std::vector<std::string> notes_;
    std::int64_t vocabulary_parts_ = 1;
    std::optional<std::string> stages_over_;
    bool cache_grows_ = false;
};

/// "tp=8" or "fsdp=2 * dp=4 (8)".
std::string describe_axes(const partition::SpecEntry& axes, const mesh::Mesh& mesh);

/// The divisors of n, ascending, at most 24 of them: "1, 2, 4, 8".
std::string divisors_text(std::int64_t n);

}  // namespace shardplan::plan
