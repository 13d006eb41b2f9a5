#include "kernels/reference/attention_rows.h"

#include <algorithm>
#include <cmath>
namespace shardplan::kernels {
namespace {

using base::Interval;

float bf16_rounded(float value) {
    return tensor::float_from_bf16(tensor::bf16_from_float(value));
}

/// What ALiBi adds to the scaled score of the key at `position`.
float alibi(const AttentionParams& params, float slope, std::int64_t position) {
    const auto place = static_cast<float>(position);
    if (params.alibi_in_bf16) {
        return bf16_rounded(bf16_rounded(slope) * bf16_rounded(place)) * params.scale;
    }
    return slope * place;
}

}  // namespace

void adjust_scores(const AttentionParams& params, float* scores, Interval keys, std::int64_t head, std::int64_t shift) {
    if (params.softcap > 0.0F) {
        for (std::int64_t j = 0; j < keys.size(); ++j) {
            scores[j] = params.softcap * std::tanh(scores[j] / params.softcap);
        }
    }
    if (!params.alibi_slopes.empty()) {
        const float slope = params.alibi_slopes[static_cast<std::size_t>(head)];
        for (std::int64_t j = 0; j < keys.size(); ++j) {
            scores[j] += alibi(params, slope, keys.begin + j - shift);
        }
    }
}

float add_sink(const AttentionProblem& problem, AttentionRow& row) {
    if (problem.params.sinks.empty()) {
        return 1.0F;
    }
    const float sink = problem.params.sinks[static_cast<std::size_t>(row.head)];
    const float max = std::max(row.max, sink);
    const float rescale = std::exp(row.max - max);
    row.sum = row.sum * rescale + std::exp(sink - max);
    row.max = max;
    return rescale;
}

void scale_values(float* values, std::int64_t count, float factor) {
    if (factor == 1.0F) {
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        values[i] *= factor;
    }
}

}  // namespace shardplan::kernels
