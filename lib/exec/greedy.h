// The most likely next token of every sequence, from logits that no rank holds whole: each rank names the maximum of
// its part of the vocabulary and where it stands, and only these pairs travel. Not part of the plan: its traffic is
// not counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "exec/executor.h"

namespace shardplan::exec {

/// Per sequence the id with the largest logit of the executor's last run (one token per sequence); of equal logits the
/// smallest id, NaN never. The same on all ranks. Collective.
std::vector<std::int32_t> greedy_tokens(comm::World& world, const Executor& executor, std::int64_t batch);

/// The same of whole logits [v].
std::int32_t greedy_token(std::span<const float> logits);

}  // namespace shardplan::exec
