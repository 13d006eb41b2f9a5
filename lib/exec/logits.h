// The whole logits of a step, put together on rank 0 for verification. Not part of the plan: its traffic is not
// counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace shardplan::exec {

/// A dense f32 tensor on the heap.
struct FloatTensor {
    tensor::Shape shape;
    std::vector<float> values;
};

/// What a rank has to say of the logits of the executor's last run; empty for later replicas and earlier stages.
std::string logits_part(const Executor& executor);

/// The parts of all ranks put together: [b, s, v] on rank 0, empty elsewhere. Collective.
FloatTensor gather_logits(comm::World& world, const plan::Plan& plan, const std::string& own_part);

/// [b, s, v] of the executor's last run on rank 0, without logits of padded ids, empty elsewhere; of each part the
/// replica of the lowest rank is taken. Collective.
FloatTensor gather_logits(comm::World& world, const plan::Plan& plan, const Executor& executor);

/// `count` tokens of every sequence of x [b, s, v], of sequence b from first[b] on.
FloatTensor tokens_of(const FloatTensor& x, std::span<const std::int64_t> first, std::int64_t count);

/// Writes x [b, n, v] into tokens [first, first + n) of the sequences from first_sequence on of `whole` [B, s, v].
void put_tokens(const FloatTensor& x, std::int64_t first, FloatTensor& whole, std::int64_t first_sequence = 0);

}  // namespace shardplan::exec
