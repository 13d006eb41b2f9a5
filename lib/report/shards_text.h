// Who holds what: the index ranges of one rank, and the boxes of one tensor with the devices that hold each. The look
// is that of jax.debug.visualize_array_sharding. Big meshes are summarised: only boxes that are drawn cost time.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "plan/plan.h"
#include "report/lookup.h"
#include "report/style.h"

namespace shardplan::report {

/// The ranges of every stored tensor that `rank` holds, and of the activations between blocks.
/// Throws std::out_of_range when the mesh has no such rank.
void write_rank_text(std::ostream& out, const plan::Plan& plan, std::int64_t rank, const Style& style);

enum class ShardsResult { drawn, several, not_found };

/// Draws the tensor that `query` names (see lookup.h); for several it lists them, for none it gives the nearest name.
ShardsResult write_shards_text(std::ostream& out, const plan::Plan& plan, std::string_view query, const Style& style);

/// The two dimensions cut into the most parts span the grid; of further ones the first part is drawn.
void draw_shards(std::ostream& out, const plan::Plan& plan, const TensorRef& tensor, const Style& style);

}  // namespace shardplan::report
