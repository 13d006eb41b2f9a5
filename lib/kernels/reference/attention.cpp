#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/interval.h"
#include "base/run.h"
#include "kernels/checks.h"
#include "kernels/reference/attention_problem.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

// The softmax is computed online (Milakov and Gimelshein 2018): blocks of keys pass by, and a row's sums are rescaled
// whenever its maximum grows. All query heads of one key/value head are treated together, so that a block of keys is
// read once for all of them.
namespace shardplan::kernels {
namespace {

using base::Interval;
using base::Run;
using tensor::DType;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t row_block = 64;
constexpr std::int64_t key_block = 64;

/// One query head at one position: the state of its running softmax.
struct Row {
    std::int64_t query = 0;
    std::int64_t head = 0;
    std::int64_t position = 0;
    Interval visible;  ///< of the keys of the run at hand
    float max = minus_infinity;
    float sum = 0.0F;
};

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

/// Up to row_block rows against all their keys. Allocated once per thread.
class RowBlock {
public:
    explicit RowBlock(const AttentionProblem& problem)
        : problem_(problem),
          transposed_(problem.queries() >= 8),
          key_(static_cast<std::size_t>(problem.head_dim())),
          queries_(static_cast<std::size_t>(row_block * problem.head_dim())),
          keys_(static_cast<std::size_t>(key_block * problem.head_dim())),
          values_(static_cast<std::size_t>(key_block * problem.value_dim())),
          scores_(static_cast<std::size_t>(row_block * key_block)),
          output_(static_cast<std::size_t>(row_block * problem.value_dim())) {}

    /// Rows [first, first + count) of kv head g in batch row b; row r = query r % sq of the group's head r / sq.
    void start(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count) {
        const std::int64_t head_begin = problem_.heads_of(g).begin;
        const std::int64_t d = problem_.head_dim();
        rows_.clear();
        for (std::int64_t r = first; r < first + count; ++r) {
            const std::int64_t query = r % problem_.queries();
            const std::int64_t head = head_begin + r / problem_.queries();
            rows_.push_back({query, head, problem_.position_of(b, query), {}});
            load_floats(problem_.q, ((b * problem_.queries() + query) * problem_.heads() + head) * d, d,
                        queries_.data() + (r - first) * d);
        }
        std::fill(output_.begin(), output_.end(), 0.0F);
    }

    /// Lets all keys pass by.
    void run(std::int64_t b, std::int64_t g) {
        for (const Run& keys : problem_.key_runs) {
            pass(b, g, keys);
        }
    }

    std::vector<Row>& rows() { return rows_; }

    /// Adds the score without a value to the sum of row r.
    void add_sink(std::size_t r) {
        Row& row = rows_[r];
        if (problem_.params.sinks.empty()) {
            return;
        }
        const float sink = problem_.params.sinks[static_cast<std::size_t>(row.head)];
        const float max = std::max(row.max, sink);
        const float rescale = std::exp(row.max - max);
        float* output = this->output(r);
        for (std::int64_t i = 0; i < problem_.value_dim(); ++i) {
            output[i] *= rescale;
        }
        row.sum = row.sum * rescale + std::exp(sink - max);
        row.max = max;
    }
    float* output(std::size_t row) { return output_.data() + static_cast<std::int64_t>(row) * problem_.value_dim(); }

private:
    void pass(std::int64_t b, std::int64_t g, const Run& keys) {
        key_shift_ = problem_.shift_of(keys);
        Interval seen;
        for (Row& row : rows_) {
            row.visible = problem_.visible(b, row.position, keys);
            if (!row.visible.empty()) {
                seen = seen.empty()
                           ? row.visible
                           : Interval{std::min(seen.begin, row.visible.begin), std::max(seen.end, row.visible.end)};
            }
        }
        // Blocks start at multiples of key_block, so that a row's result does not depend on the rows beside it.
        for (std::int64_t begin = seen.begin; begin < seen.end;) {
            const std::int64_t end = std::min(seen.end, begin / key_block * key_block + key_block);
            step(b, g, {begin, end});
            begin = end;
        }
    }

    void step(std::int64_t b, std::int64_t g, Interval keys) {
        const std::int64_t d = problem_.head_dim();
        const std::int64_t dv = problem_.value_dim();
        const auto count = static_cast<std::int64_t>(rows_.size());
        load_block(b, g, keys);
        std::fill(scores_.begin(), scores_.end(), 0.0F);
        if (transposed_) {
            tile_functions().weighted_sum({queries_.data(), d}, {keys_.data(), key_block}, {scores_.data(), key_block},
                                          {count, keys.size(), d});
        } else {
            dot_tile({queries_.data(), d}, Matrix<const float>{keys_.data(), d}, {scores_.data(), key_block},
                     {count, keys.size(), d});
        }
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            softmax_step(r, keys);
        }
        tile_functions().weighted_sum({scores_.data(), key_block}, {values_.data(), dv}, {output_.data(), dv},
                                      {count, dv, keys.size()});
    }

    /// Copies a block of keys and values, as float.
    void load_block(std::int64_t b, std::int64_t g, Interval keys) {
        const std::int64_t d = problem_.head_dim();
        const std::int64_t dv = problem_.value_dim();
        for (std::int64_t j = 0; j < keys.size(); ++j) {
            const std::int64_t token = (b * problem_.keys() + keys.begin + j) * problem_.kv_heads() + g;
            load_floats(problem_.v, token * problem_.v.shape[3], dv, values_.data() + j * dv);
            if (!transposed_) {
                load_floats(problem_.k, token * d, d, keys_.data() + j * d);
                continue;
            }
            load_floats(problem_.k, token * d, d, key_.data());
            for (std::int64_t i = 0; i < d; ++i) {
                keys_[static_cast<std::size_t>(i * key_block + j)] = key_[static_cast<std::size_t>(i)];
            }
        }
    }

    /// Turns the dot products of row r into weights exp(score - max) and rescales what it has summed so far.
    void softmax_step(std::size_t r, Interval keys) {
        Row& row = rows_[r];
        float* scores = scores_.data() + static_cast<std::int64_t>(r) * key_block;
        const Interval seen = base::intersect(keys, row.visible);
        if (seen.empty()) {
            std::fill(scores, scores + keys.size(), 0.0F);
            return;
        }
        std::fill(scores, scores + (seen.begin - keys.begin), 0.0F);
        std::fill(scores + (seen.end - keys.begin), scores + keys.size(), 0.0F);
        scores += seen.begin - keys.begin;
        float max = row.max;
        finish_scores(scores, seen, row.head);
        for (std::int64_t j = 0; j < seen.size(); ++j) {
            max = std::max(max, scores[j]);
        }
        const float rescale = std::exp(row.max - max);  // 0 for the first keys, as the old maximum is -inf
        float* output = this->output(r);
        for (std::int64_t i = 0; i < problem_.value_dim(); ++i) {
            output[i] *= rescale;
        }
        row.sum = row.sum * rescale + tile_functions().exp_sum(scores, seen.size(), max);
        row.max = max;
    }

    /// Scale, soft cap and ALiBi, in this order.
    void finish_scores(float* scores, Interval keys, std::int64_t head) const {
        const AttentionParams& params = problem_.params;
        for (std::int64_t j = 0; j < keys.size(); ++j) {
            scores[j] *= params.scale;
        }
        if (params.softcap > 0.0F) {
            for (std::int64_t j = 0; j < keys.size(); ++j) {
                scores[j] = params.softcap * std::tanh(scores[j] / params.softcap);
            }
        }
        if (!params.alibi_slopes.empty()) {
            const float slope = params.alibi_slopes[static_cast<std::size_t>(head)];
            for (std::int64_t j = 0; j < keys.size(); ++j) {
                scores[j] += alibi(params, slope, keys.begin + j - key_shift_);
            }
        }
    }

    const AttentionProblem& problem_;
    // Turning a block of keys pays when many rows use it. Must not depend on the number of heads, so that a rank with
    // some of the heads gets the same bits.
    bool transposed_;
    std::int64_t key_shift_ = 0;  ///< of the run at hand
    std::vector<float> key_;      ///< [d], scratch
    std::vector<Row> rows_;
    std::vector<float> queries_;  ///< [row_block, d]
    std::vector<float> keys_;     ///< [key_block, d], or [d, key_block] if transposed
    std::vector<float> values_;   ///< [key_block, dv]
    std::vector<float> scores_;   ///< [row_block, key_block]
    std::vector<float> output_;   ///< [row_block, dv], not yet divided by the sums
};

/// For every query and head: begin(b, row, its output), which are 0 and may be set to what other keys gave, then all
/// keys, then finish(b, row, its unnormalised output).
template <typename Begin, typename Finish>
void attend(const AttentionProblem& problem, Begin begin, Finish finish) {
    const std::int64_t most_rows = problem.queries() * std::min(problem.heads(), problem.params.queries_per_kv);
#pragma omp parallel if (worth_threads(problem.q.count() * problem.keys()))
    {
        RowBlock block(problem);
#pragma omp for collapse(3) schedule(dynamic)
        for (std::int64_t b = 0; b < problem.batch(); ++b) {
            for (std::int64_t g = 0; g < problem.kv_heads(); ++g) {
                for (std::int64_t first = 0; first < most_rows; first += row_block) {
                    const std::int64_t count = problem.heads_of(g).size() * problem.queries();
                    if (first < count) {
                        block.start(b, g, first, std::min(row_block, count - first));
                        for (std::size_t r = 0; r < block.rows().size(); ++r) {
                            begin(b, block.rows()[r], block.output(r));
                        }
                        block.run(b, g);
                        for (std::size_t r = 0; r < block.rows().size(); ++r) {
                            block.add_sink(r);
                            finish(b, block.rows()[r], block.output(r));
                        }
                    }
                }
            }
        }
    }
}

void nothing_before(std::int64_t, Row&, float*) {}

struct PartialSums {
    float* o;
    float* m;
    float* l;
};

/// Checks the results of a partial attention.
PartialSums partial_sums(const char* kernel, const AttentionProblem& problem, View o, View m, View l) {
    check_shape(kernel, "o", o.shape, {problem.batch(), problem.queries(), problem.heads(), problem.value_dim()});
    check_dtype(kernel, "o", o.dtype, DType::f32);
    for (const auto& [name, view] : {std::pair{"m", &m}, std::pair{"l", &l}}) {
        check_shape(kernel, name, view->shape, {problem.batch(), problem.queries(), problem.heads()});
        check_dtype(kernel, name, view->dtype, DType::f32);
    }
    return {o.as<float>(), m.as<float>(), l.as<float>()};
}

}  // namespace

void ReferenceKernels::attention(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View y) const {
    const AttentionProblem problem(q, k, v, params);
    const std::int64_t dv = problem.value_dim();
    check_shape("attention", "y", y.shape, {problem.batch(), problem.queries(), problem.heads(), dv});
    check_dtype("attention", "y", y.dtype, q.dtype);
    attend(problem, nothing_before, [&](std::int64_t b, const Row& row, float* output) {
        const float factor = row.sum > 0.0F ? 1.0F / row.sum : 0.0F;
        for (std::int64_t i = 0; i < dv; ++i) {
            output[i] *= factor;
        }
        store_floats(output, dv, y, ((b * problem.queries() + row.query) * problem.heads() + row.head) * dv);
    });
}

void ReferenceKernels::attention_partial(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o,
                                         View m, View l) const {
    const AttentionProblem problem(q, k, v, params);
    const PartialSums sums = partial_sums("attention_partial", problem, o, m, l);
    const std::int64_t dv = problem.value_dim();
    attend(problem, nothing_before, [&](std::int64_t b, const Row& row, const float* output) {
        const std::int64_t place = (b * problem.queries() + row.query) * problem.heads() + row.head;
        std::copy_n(output, dv, sums.o + place * dv);
        sums.m[place] = row.max;
        sums.l[place] = row.sum;
    });
}

void ReferenceKernels::attention_accumulate(ConstView q, ConstView k, ConstView v, const AttentionParams& params,
                                            View o, View m, View l) const {
    const AttentionProblem problem(q, k, v, params);
    const PartialSums sums = partial_sums("attention_accumulate", problem, o, m, l);
    if (!problem.sees_any()) {
        return;
    }
    const std::int64_t dv = problem.value_dim();
    const auto place_of = [&](std::int64_t b, const Row& row) {
        return (b * problem.queries() + row.query) * problem.heads() + row.head;
    };
    attend(
        problem,
        [&](std::int64_t b, Row& row, float* output) {
            const std::int64_t place = place_of(b, row);
            std::copy_n(sums.o + place * dv, dv, output);
            row.max = sums.m[place];
            row.sum = sums.l[place];
        },
        [&](std::int64_t b, const Row& row, const float* output) {
            const std::int64_t place = place_of(b, row);
            std::copy_n(output, dv, sums.o + place * dv);
            sums.m[place] = row.max;
            sums.l[place] = row.sum;
        });
}

}  // namespace shardplan::kernels
