#include <algorithm>
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

constexpr std::int64_t row_block = 32 * panel_rows;

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
    explicit RowBlock(const AttentionProblem& problem)
        : problem_(problem),
          functions_(attention_functions()),
          width_((problem.value_dim() + functions_.width - 1) / functions_.width * functions_.width),
          token_(static_cast<std::size_t>(problem.head_dim())),
          queries_(static_cast<std::size_t>(row_block * problem.head_dim())),
          keys_(static_cast<std::size_t>(panel_keys * problem.head_dim())),
          values_(static_cast<std::size_t>(panel_keys * width_)),
          scores_(static_cast<std::size_t>(panel_rows * panel_keys)),
          output_(static_cast<std::size_t>(row_block * width_)) {}

    /// Rows [first, first + count) of kv head g in batch row b.
    void start(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count) {
        const Interval heads = problem_.heads_of(g);
        const std::int64_t d = problem_.head_dim();
        rows_.clear();
        std::fill(queries_.begin(), queries_.end(), 0.0F);
        for (std::int64_t r = 0; r < count; ++r) {
            const std::int64_t query = (first + r) / heads.size();
            const std::int64_t head = heads.begin + (first + r) % heads.size();
            rows_.push_back({query, head, problem_.position_of(b, query), {}});
            load_floats(problem_.q, ((b * problem_.queries() + query) * problem_.heads() + head) * d, d, token_.data());
            float* to = queries_.data() + r / panel_rows * panel_rows * d + r % panel_rows;
            for (std::int64_t i = 0; i < d; ++i) {
                to[i * panel_rows] = token_[static_cast<std::size_t>(i)] * problem_.params.scale;
            }
        }
        std::fill(output_.begin(), output_.end(), 0.0F);
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
    /// What the rows of a panel see of the keys.
    Interval seen_by(std::int64_t first, Interval keys) const {
        Interval seen;
        for (std::int64_t r = first; r < std::min(first + panel_rows, std::ssize(rows_)); ++r) {
            seen = joined(seen, base::intersect(keys, rows_[static_cast<std::size_t>(r)].visible));
        }
        return seen;
    }

    void step(std::int64_t b, std::int64_t g, Interval keys, std::int64_t shift) {
        bool packed = false;
        for (std::int64_t first = 0; first < std::ssize(rows_); first += panel_rows) {
            const Interval seen = seen_by(first, keys);
            if (!seen.empty()) {
                if (!packed) {
                    pack(b, g, keys);
                    packed = true;
                }
                add_panel(first, keys, seen, shift);
            }
        }
    }

    /// Packs a block of keys and values, as float.
    void pack(std::int64_t b, std::int64_t g, Interval keys) {
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
    void add_panel(std::int64_t first, Interval keys, Interval seen, std::int64_t shift) {
        const std::int64_t d = problem_.head_dim();
        const std::int64_t tile = (seen.begin - keys.begin) / functions_.width * functions_.width;
        functions_.scores(queries_.data() + first * d, keys_.data() + tile * d, scores_.data() + tile,
                          {panel_rows, seen.end - keys.begin - tile, d});
        float factors[panel_rows] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
        for (std::int64_t r = first; r < std::min(first + panel_rows, std::ssize(rows_)); ++r) {
            factors[r - first] =
                weigh(problem_, rows_[static_cast<std::size_t>(r)],
                      scores_.data() + (r - first) * panel_keys + seen.begin - keys.begin, seen, shift);
        }
        functions_.values(
            scores_.data() + seen.begin - keys.begin,
            {values_.data() + (seen.begin - keys.begin) * functions_.width, keys.size() * functions_.width},
            {output_.data() + first * width_, width_}, {panel_rows, width_, seen.size()}, factors);
    }

    const AttentionProblem& problem_;
    const AttentionFunctions& functions_;
    std::int64_t width_;        ///< of a row of output: whole tiles
    std::vector<float> token_;  ///< scratch
    std::vector<AttentionRow> rows_;
    std::vector<float> queries_;  ///< [row_block / panel_rows, d, panel_rows]
    std::vector<float> keys_;     ///< packed
    std::vector<float> values_;   ///< packed
    std::vector<float> scores_;   ///< [panel_rows, panel_keys]
    std::vector<float> output_;   ///< [row_block, width], not yet divided by the sums
};

}  // namespace

void attend_many(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish) {
    const std::int64_t most_rows = problem.queries() * std::min(problem.heads(), problem.params.queries_per_kv);
    const std::int64_t blocks = (most_rows + row_block - 1) / row_block;
#pragma omp parallel if (worth_threads(problem.q.count() * problem.keys()))
    {
        RowBlock block(problem);
        // The last rows see the most keys: they come first, so that no thread is left with them.
#pragma omp for collapse(3) schedule(dynamic)
        for (std::int64_t i = 0; i < blocks; ++i) {
            for (std::int64_t b = 0; b < problem.batch(); ++b) {
                for (std::int64_t g = 0; g < problem.kv_heads(); ++g) {
                    const std::int64_t first = (blocks - 1 - i) * row_block;
                    const std::int64_t count = problem.heads_of(g).size() * problem.queries();
                    if (first >= count) {
                        continue;
                    }
                    block.start(b, g, first, std::min(row_block, count - first));
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
