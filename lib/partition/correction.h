// Makes a spec fit a shape and a mesh by eformer's decision table (get_corrected_named_sharding, semantics 1c.1) and
// says what it did: an entry with a missing axis, or over which its dimension does not divide, becomes None as a whole,
// never a part of it. An axis used twice is not corrected but an error. The result says nothing of severity: that a
// drop is an error (strict) or a warning is the caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.h"
#include "partition/partition_spec.h"
#include "tensor/shape.h"

namespace shardplan::partition {

enum class CorrectionReason : std::uint8_t {
    padded,         ///< the spec is shorter than the rank: None for the dimensions from `dim` on
    truncated,      ///< the spec is longer than the rank: its entries from `dim` = rank on are ignored
    missing_axis,   ///< the mesh does not have all `axes` of the entry: None
    not_divisible,  ///< `size` is no multiple of `product`, the product of the sizes of `axes`: None
    unconstrained,  ///< no entry is left: P(), which upstream takes as "no constraint" (dim -1)
};

std::string_view to_string(CorrectionReason reason);

struct CorrectionStep {
    CorrectionReason reason = CorrectionReason::padded;
    int dim = -1;
    std::int64_t size = 0;     ///< of the dimension; 0 for truncated and unconstrained
    SpecEntry axes;            ///< of the entry that was dropped
    std::int64_t product = 0;  ///< not_divisible only
    std::string missing;       ///< missing_axis: the first axis the mesh does not have
};

enum class CorrectionError : std::uint8_t { no_mesh, duplicate_axis };

struct Correction {
    PartitionSpec spec;
    std::vector<CorrectionStep> steps;     ///< in order of decision; empty = the spec fits as it is
    std::optional<CorrectionError> error;  ///< then the spec can not be used
    std::vector<std::string> duplicates;   ///< axes used more than once in the corrected spec, in order of appearance
};

/// A mesh without axes is no mesh: error no_mesh. Axes of size 1 are kept; a dimension of size 0 divides.
Correction correct_spec(const PartitionSpec& spec, const tensor::Shape& shape, const mesh::Mesh& mesh);

/// The axes that a spec uses more than once, in order of appearance.
std::vector<std::string> duplicate_axes(const PartitionSpec& spec);

}  // namespace shardplan::partition
