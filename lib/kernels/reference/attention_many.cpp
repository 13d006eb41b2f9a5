#include <omp.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "kernels/reference/attention_rows.h"
#include "kernels/reference/attention_tiles.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/threads.h"

// Prefill. All query heads of one key/value head are treated together, so that a block of keys and values is read,
// packed and made float once for all of them. Rows are ordered by query, then head: those that see a block follow each
// other, and each panel of them is multiplied with what at least one of its rows sees.
namespace shardplan::kernels {
namespace {

using base::Interval;
using base::Run;
using tensor::DType;

/// Rows that pass a block of keys together: with their sums about half of the second cache. Fewer where there would not
/// be enough blocks for all threads; the result is the same.
constexpr std::int64_t block_bytes = 262144;
constexpr std::int64_t blocks_per_thread = 4;

std::int64_t rows_per_block(const AttentionProblem& problem) {
    const std::int64_t row_bytes = (problem.head_dim() + problem.value_dim()) * 4;
    const std::int64_t most = std::max<std::int64_t>(1, block_bytes / row_bytes / panel_rows);
    const std::int64_t group = std::min(problem.heads(), problem.params.queries_per_kv);
    const std::int64_t heads = std::max<std::int64_t>(1, problem.batch() * problem.kv_heads());
    const std::int64_t blocks = (blocks_per_thread * omp_get_max_threads() + heads - 1) / heads;
    const std::int64_t panels = (problem.queries() * group + panel_rows - 1) / panel_rows;
    return std::clamp<std::int64_t>((panels + blocks - 1) / blocks, 1, most) * panel_rows;
}

std::int64_t end_of_keys(std::int64_t begin, std::int64_t last) {
    return std::min(last, begin / panel_keys * panel_keys + panel_keys);
}

/// The least interval that holds both.
Interval joined(Interval a, Interval b) {
    return a.empty() ? b : b.empty() ? a : Interval{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// Up to row_block rows against all their keys. Allocated once per thread.
class RowBlock {
public:
    RowBlock(const AttentionProblem& problem, std::int64_t rows)
        : problem_(problem),
          functions_(attention_functions()),
          width_((problem.value_dim() + functions_.width - 1) / functions_.width * functions_.width),
          adjusted_(problem.params.softcap > 0.0F || !problem.params.alibi_slopes.empty()),
          queries_(static_cast<std::size_t>(rows * problem.head_dim())),
          keys_(static_cast<std::size_t>(panel_keys * problem.head_dim())),
          values_(static_cast<std::size_t>(panel_keys * width_)),
          scores_(static_cast<std::size_t>(panel_rows * score_stride)),
          output_(static_cast<std::size_t>(rows * width_)) {}

    /// Rows [first, first + count) of kv head g in batch row b.
    void start(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count) {
        const Interval heads = problem_.heads_of(g);
        const std::int64_t d = problem_.head_dim();
        rows_.clear();
        std::int64_t query = first / heads.size();
        std::int64_t head = heads.begin + first % heads.size();
        for (std::int64_t r = 0; r < count; ++r) {
            rows_.push_back({query, head, problem_.position_of(b, query), {}});
            const std::int64_t row = (b * problem_.queries() + query) * problem_.heads() + head;
            if (query + 2 < problem_.queries()) {
                fetch_query(row + 2 * problem_.heads());
            }
            float* to = queries_.data() + r * d;
            load_floats(problem_.q, row * d, d, to);
            scale_values(to, d, problem_.params.scale);
            if (++head == heads.end) {
                head = heads.begin;
                ++query;
            }
        }
        std::fill(output_.begin(), output_.begin() + count * width_, 0.0F);
    }

    /// Lets all keys pass by.
    void run(std::int64_t b, std::int64_t g) {
        for (const Run& keys : problem_.key_runs) {
            Interval seen;
            for (AttentionRow& row : rows_) {
                row.visible = problem_.visible(b, row.position, keys);
                seen = joined(seen, row.visible);
            }
            for (std::int64_t begin = seen.begin; begin < seen.end;) {
                const Interval block{begin, end_of_keys(begin, seen.end)};
                step(b, g, block, problem_.shift_of(keys));
                begin = block.end;
            }
        }
    }

    std::vector<AttentionRow>& rows() { return rows_; }
    float* output(std::size_t row) { return output_.data() + static_cast<std::int64_t>(row) * width_; }

private:
    /// Asks for a row of queries: the processor does not foresee short rows far apart.
    void fetch_query(std::int64_t row) const {
        const std::int64_t bytes = problem_.head_dim() * tensor::size_of(problem_.q.dtype);
        const char* from = reinterpret_cast<const char*>(problem_.q.data) + row * bytes;
        for (std::int64_t i = 0; i < bytes; i += 64) {
            __builtin_prefetch(from + i);
        }
    }

    /// What the rows of a panel see of the keys.
    Interval seen_by(std::int64_t first, Interval keys) const {
        Interval seen;
        for (std::int64_t r = first; r < std::min(first + panel_rows, std::ssize(rows_)); ++r) {
            seen = joined(seen, base::intersect(keys, rows_[static_cast<std::size_t>(r)].visible));
        }
        return seen;
    }

    void step(std::int64_t b, std::int64_t g, Interval keys, std::int64_t shift) {
        for (std::int64_t first = 0; first < std::ssize(rows_); first += panel_rows) {
            const Interval seen = seen_by(first, keys);
            if (!seen.empty()) {
                pack(b, g, keys);
                add_panel(first, seen, shift);
            }
        }
    }

    /// Packs a block of keys and values, as float, unless it still is.
    void pack(std::int64_t b, std::int64_t g, Interval keys) {
        if (b == batch_ && g == head_ && keys.begin == packed_.begin && keys.end <= packed_.end) {
            return;
        }
        batch_ = b;
        head_ = g;
        packed_ = keys;
        const std::int64_t token = (b * problem_.keys() + keys.begin) * problem_.kv_heads() + g;
        const std::int64_t d = problem_.head_dim();
        const std::int64_t row = problem_.v.shape[3];
        const TileShape keys_shape{keys.size(), d, 0};
        const TileShape values_shape{keys.size(), problem_.value_dim(), 0};
        if (problem_.k.dtype == DType::f32) {
            functions_.pack_keys_f32({problem_.k.as<float>() + token * d, problem_.kv_heads() * d}, keys_shape,
                                     keys_.data());
            functions_.pack_values_f32({problem_.v.as<float>() + token * row, problem_.kv_heads() * row}, values_shape,
                                       values_.data());
        } else {
            functions_.pack_keys_bf16({problem_.k.as<std::uint16_t>() + token * d, problem_.kv_heads() * d}, keys_shape,
                                      keys_.data());
            functions_.pack_values_bf16({problem_.v.as<std::uint16_t>() + token * row, problem_.kv_heads() * row},
                                        values_shape, values_.data());
        }
    }

    /// `seen` of the packed keys against the panel that begins with row `first`.
    void add_panel(std::int64_t first, Interval seen, std::int64_t shift) {
        const std::int64_t d = problem_.head_dim();
        const std::int64_t begin = seen.begin - packed_.begin;
        const std::int64_t tile = begin / functions_.width * functions_.width;
        functions_.scores({queries_.data() + first * d, d}, keys_.data() + tile * d, scores_.data() + tile,
                          {panel_rows, seen.end - packed_.begin - tile, d});
        const std::array<float, panel_rows> factors = weigh(first, seen, shift);
        functions_.values(scores_.data() + begin,
                          {values_.data() + begin * functions_.width, packed_.size() * functions_.width},
                          {output_.data() + first * width_, width_}, {panel_rows, width_, seen.size()}, factors.data());
    }

    /// Turns the scores of a panel with `keys`, which its rows see together, into weights, 0 for what a row does not
    /// see. Returns the factors for what the rows have summed before.
    std::array<float, panel_rows> weigh(std::int64_t first, Interval keys, std::int64_t shift) {
        std::array<Interval, panel_rows> seen;
        std::array<float, panel_rows> max, sum, factor;
        factor.fill(1.0F);
        const std::int64_t count = std::min(panel_rows, std::ssize(rows_) - first);
        float* scores = scores_.data() + keys.begin - packed_.begin;
        for (std::int64_t r = 0; r < count; ++r) {
            const AttentionRow& row = rows_[static_cast<std::size_t>(first + r)];
            const auto place = static_cast<std::size_t>(r);
            const Interval visible = base::intersect(keys, row.visible);
            seen[place] = visible.empty() ? Interval{} : Interval{visible.begin - keys.begin, visible.end - keys.begin};
            if (!visible.empty() && adjusted_) {
                adjust_scores(problem_.params, scores + r * score_stride + seen[place].begin, visible, row.head, shift);
            }
            max[place] = row.max;
            sum[place] = row.sum;
        }
        functions_.soften({scores, score_stride}, std::span(seen).first(static_cast<std::size_t>(count)),
                          {max.data(), sum.data(), factor.data()});
        for (std::int64_t r = 0; r < count; ++r) {
            const auto place = static_cast<std::size_t>(r);
            rows_[static_cast<std::size_t>(first + r)].max = max[place];
            rows_[static_cast<std::size_t>(first + r)].sum = sum[place];
            clear(scores + r * score_stride, 0, seen[place].begin);
            clear(scores + r * score_stride, seen[place].end, keys.size());
        }
        return factor;
    }

    static void clear(float* scores, std::int64_t begin, std::int64_t end) {
        if (begin < end) {
            std::fill(scores + begin, scores + end, 0.0F);
        }
    }

    const AttentionProblem& problem_;
    const AttentionFunctions& functions_;
    std::int64_t width_;       ///< of a row of output: whole tiles
    bool adjusted_;            ///< do scores get more than a scale?
    std::int64_t batch_ = -1;  ///< whose keys are packed
    std::int64_t head_ = -1;
    Interval packed_;
    std::vector<AttentionRow> rows_;
    std::vector<float> queries_;  ///< [rows, d], scaled
    std::vector<float> keys_;     ///< packed
    std::vector<float> values_;   ///< packed
    std::vector<float> scores_;   ///< [panel_rows, score_stride]
    std::vector<float> output_;   ///< [rows, width], not yet divided by the sums
};

}  // namespace

void attend_many(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish) {
    const std::int64_t rows = rows_per_block(problem);
    const std::int64_t most_rows = problem.queries() * std::min(problem.heads(), problem.params.queries_per_kv);
    const std::int64_t blocks = (most_rows + rows - 1) / rows;
#pragma omp parallel if (worth_threads(problem.q.count() * problem.keys()))
    {
        RowBlock block(problem, rows);
        // The last rows see the most keys: they come first, and what is packed for them may serve the next ones.
#pragma omp for collapse(3) schedule(dynamic)
        for (std::int64_t b = 0; b < problem.batch(); ++b) {
            for (std::int64_t g = 0; g < problem.kv_heads(); ++g) {
                for (std::int64_t i = 0; i < blocks; ++i) {
                    const std::int64_t first = (blocks - 1 - i) * rows;
                    const std::int64_t count = problem.heads_of(g).size() * problem.queries();
                    if (first >= count) {
                        continue;
                    }
                    block.start(b, g, first, std::min(rows, count - first));
                    for (std::size_t r = 0; r < block.rows().size(); ++r) {
                        begin(b, block.rows()[r], block.output(r));
                    }
                    block.run(b, g);
                    for (std::size_t r = 0; r < block.rows().size(); ++r) {
                        scale_values(block.output(r), problem.value_dim(), add_sink(problem, block.rows()[r]));
                        finish(b, block.rows()[r], block.output(r));
                    }
                }
            }
        }
    }
}

}  // namespace shardplan::kernels
