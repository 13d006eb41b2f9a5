// Logical axes as eformer names them (PartitionManager.resolve, semantics 1b.2 - 1b.4): tokens such as "__BATCH__", and
// the named lists of them that stand for the kinds of weights and activations. Resolving joins names and nothing more:
// axes may be missing from the mesh, used twice or not divide (see correction.h). Dialect `current` only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "partition/partition_axis.h"
#include "tensor/shape.h"

namespace shardplan::partition {

/// One dimension: None, a token, or a composite of tokens, field names and mesh axes ("_" inside of a composite is an
/// axis of that name, as upstream).
using AxisTerm = std::variant<std::monostate, std::string, std::vector<std::string>>;

/// Nothing, a mode by its upstream name ("__autoregressive__", "__insert__" generate; every other does not), or the
/// dimension to look at: decode iff it has size 1, else train.
using ModeTerm = std::variant<std::monostate, std::string, int>;

/// Upstream raises ValueError for each of these.
enum class ResolveProblem : std::uint8_t {
    unknown_name,  ///< not a token, at top level
    nested_tuple,  ///< a member of a composite that stands for several axes
    empty_member,  ///< a member of a composite that stands for None
    mode_missing,
    shape_missing,  ///< the mode is a dimension, but there is no shape with it
};

struct ResolveError : std::invalid_argument {
    ResolveError(ResolveProblem problem_, const std::string& text) : std::invalid_argument(text), problem(problem_) {}
    ResolveProblem problem;
};

/// Throws ResolveError. @pre partition_axis.compat() is current.
PartitionSpec resolve_axes(const PartitionAxis& partition_axis, const std::vector<AxisTerm>& axes, const ModeTerm& mode,
                           const std::optional<tensor::Shape>& shape = std::nullopt);

struct DynamicShardingAxes {
    std::string name;  ///< "ColumnWise"
    std::vector<AxisTerm> axes;
    ModeTerm mode;
};

/// The 17 lists of eformer: HiddenStateSharding ... ExpertTensorParallel, in its order.
std::span<const DynamicShardingAxes> dynamic_sharding_axes();

/// nullptr when there is none of that name.
const DynamicShardingAxes* find_dynamic_sharding_axes(std::string_view name);

}  // namespace shardplan::partition
