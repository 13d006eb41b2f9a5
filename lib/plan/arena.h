// Where the values of a block lie: fixed offsets in one block of memory, the arena, from the steps between which each
// of them is needed. All blocks of a stage use one arena in turn, as large as the largest needs it. The input of a
// block lies at the start of the arena and its output, unless it is in the input's memory, at the end. The next block
// then uses the arena upside down: what would lie at `offset` lies as far from the end, so that its input is where the
// output is, and nothing is ever copied from block to block.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardplan::plan {

/// Offsets and sizes in an arena are multiples of this many bytes.
inline constexpr std::int64_t arena_alignment = 64;

/// Bytes that a value takes in an arena.
constexpr std::int64_t arena_size(std::int64_t bytes) {
    return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}

/// Fills in Value::offset, staging_offset, scratch_offset and arena_bytes. Greedy, the largest first, each into the
/// smallest gap that fits; of a few orders the one that needs the least. The offset of an output of its own is
/// the one in an arena of arena_bytes. @pre Step::last_use is filled in
void lay_out_arena(BlockPlan& block);

/// The value that owns the memory of `id`.
inline ValueId memory_owner(const BlockPlan& block, ValueId id) {
    const ValueId alias = block.values[static_cast<std::size_t>(id)].alias_of;
    return alias < 0 ? id : alias;
}

/// Whether the output of the block has memory of its own in the arena: then the next block uses it upside down.
inline bool turns_arena(const BlockPlan& block) {
    return memory_owner(block, block.output) != block.input;
}

}  // namespace shardplan::plan
