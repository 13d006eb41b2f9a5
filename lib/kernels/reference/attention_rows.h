// The running softmax of one query head at one position (Milakov and Gimelshein 2018): keys pass by in blocks, and what
// a row has summed is rescaled whenever its maximum grows.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "base/interval.h"
#include "kernels/reference/attention_problem.h"

namespace shardplan::kernels {

constexpr float no_score = -std::numeric_limits<float>::infinity();

/// Keys between two looks at the maximum. Blocks start at multiples of it, so that a row's result does not depend on
/// the rows beside it.
constexpr std::int64_t key_block = 64;

struct AttentionRow {
    std::int64_t query = 0;
    std::int64_t head = 0;
    std::int64_t position = 0;
    base::Interval visible;  ///< of the keys of the run at hand
    float max = no_score;
    float sum = 0.0F;
};

/// The end of the block of keys that `begin` is in, at most `last`.
inline std::int64_t end_of_block(std::int64_t begin, std::int64_t last) {
    return std::min(last, begin / key_block * key_block + key_block);
}

/// Soft cap and ALiBi on scaled scores of one head with `keys`, in this order. `shift` = AttentionProblem::shift_of the
/// run.
void adjust_scores(const AttentionParams& params, float* scores, base::Interval keys, std::int64_t head,
                   std::int64_t shift);

/// Adds the score without a value. Returns the factor for what the row has summed.
float add_sink(const AttentionProblem& problem, AttentionRow& row);

void scale_values(float* values, std::int64_t count, float factor);

/// Before the first key: may set the row and its sums, which are 0, to what other keys gave. After the last: takes
/// them, not yet divided by the sum of the weights.
using BeginRow = std::function<void(std::int64_t b, AttentionRow& row, float* output)>;
using FinishRow = std::function<void(std::int64_t b, const AttentionRow& row, float* output)>;

/// One query per sequence: streams the keys and values once, as they lie in memory, for all heads together.
void attend_one(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish);

/// Any number of queries, in blocks.
void attend_many(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish);

}  // namespace shardplan::kernels
