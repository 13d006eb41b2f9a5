#include <algorithm>
#include <vector>

#include "kernels/reference/attention_rows.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

// Prefill. All query heads of one key/value head are treated together, so that a block of keys and values is read, and
// made float, once for all of them. Rows are ordered by query, then head: those that see a block follow each other.
namespace shardplan::kernels {
namespace {

using base::Interval;
using base::Run;

constexpr std::int64_t row_block = 192;  ///< a multiple of the rows that the tiles take at once

static_assert(key_block == block_columns);

/// Up to row_block rows against all their keys. Allocated once per thread.
class RowBlock {
public:
    explicit RowBlock(const AttentionProblem& problem)
        : problem_(problem),
          width_((problem.value_dim() + block_columns - 1) / block_columns * block_columns),
          token_(static_cast<std::size_t>(std::max(problem.head_dim(), width_))),
          queries_(static_cast<std::size_t>(row_block * problem.head_dim())),
          keys_(static_cast<std::size_t>(key_block * problem.head_dim())),
          values_(static_cast<std::size_t>(key_block * width_)),
          scores_(static_cast<std::size_t>(row_block * key_block)),
          output_(static_cast<std::size_t>(row_block * width_)) {}

    /// Rows [first, first + count) of kv head g in batch row b.
    void start(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count) {
        const Interval heads = problem_.heads_of(g);
        const std::int64_t d = problem_.head_dim();
        rows_.clear();
        for (std::int64_t r = first; r < first + count; ++r) {
            const std::int64_t query = r / heads.size();
            const std::int64_t head = heads.begin + r % heads.size();
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

    std::vector<AttentionRow>& rows() { return rows_; }
    float* output(std::size_t row) { return output_.data() + static_cast<std::int64_t>(row) * width_; }

private:
    void pass(std::int64_t b, std::int64_t g, const Run& keys) {
        Interval seen;
        for (AttentionRow& row : rows_) {
            row.visible = problem_.visible(b, row.position, keys);
            if (!row.visible.empty()) {
                seen = seen.empty()
                           ? row.visible
                           : Interval{std::min(seen.begin, row.visible.begin), std::max(seen.end, row.visible.end)};
            }
        }
        for (std::int64_t begin = seen.begin; begin < seen.end;) {
            const Interval block{begin, end_of_block(begin, seen.end)};
            step(b, g, block, problem_.shift_of(keys));
            begin = block.end;
        }
    }

    /// The rows from the first to the last that see any of the keys.
    Interval rows_that_see(Interval keys) const {
        const auto sees = [&](const AttentionRow& row) { return !base::intersect(keys, row.visible).empty(); };
        const auto first = std::find_if(rows_.begin(), rows_.end(), sees);
        const auto last = std::find_if(rows_.rbegin(), std::make_reverse_iterator(first), sees).base();
        return {first - rows_.begin(), last - rows_.begin()};
    }

    void step(std::int64_t b, std::int64_t g, Interval keys, std::int64_t shift) {
        const Interval rows = rows_that_see(keys);
        if (rows.empty()) {
            return;
        }
        const std::int64_t d = problem_.head_dim();
        load_block(b, g, keys);
        float* scores = scores_.data();
        std::fill(scores, scores + rows.size() * key_block, 0.0F);
        tile_functions().block_f32({queries_.data() + rows.begin * d, d}, keys_.data(), {scores, key_block},
                                   {rows.size(), key_block, d});
        for (std::int64_t r = 0; r < rows.size(); ++r) {
            const auto row = static_cast<std::size_t>(rows.begin + r);
            const float factor = weigh(problem_, rows_[row], scores + r * key_block, keys, shift);
            scale_values(output(row), problem_.value_dim(), factor);
        }
        for (std::int64_t c = 0; c < width_; c += block_columns) {
            tile_functions().block_f32({scores, key_block}, values_.data() + c * key_block,
                                       {output_.data() + rows.begin * width_ + c, width_},
                                       {rows.size(), block_columns, keys.size()});
        }
    }

    /// Copies a block of keys, turned, and of values, in blocks of columns; as float.
    void load_block(std::int64_t b, std::int64_t g, Interval keys) {
        const std::int64_t d = problem_.head_dim();
        for (std::int64_t j = 0; j < keys.size(); ++j) {
            const std::int64_t token = (b * problem_.keys() + keys.begin + j) * problem_.kv_heads() + g;
            load_floats(problem_.k, token * d, d, token_.data());
            for (std::int64_t i = 0; i < d; ++i) {
                keys_[static_cast<std::size_t>(i * key_block + j)] = token_[static_cast<std::size_t>(i)];
            }
            for (std::int64_t c = 0; c < problem_.value_dim(); c += block_columns) {
                load_floats(problem_.v, token * problem_.v.shape[3] + c,
                            std::min(block_columns, problem_.value_dim() - c),
                            values_.data() + c * key_block + j * block_columns);
            }
        }
    }

    const AttentionProblem& problem_;
    std::int64_t width_;        ///< of a row of output: whole blocks of columns
    std::vector<float> token_;  ///< scratch
    std::vector<AttentionRow> rows_;
    std::vector<float> queries_;  ///< [row_block, d]
    std::vector<float> keys_;     ///< [d, key_block]
    std::vector<float> values_;   ///< [width / 64, key_block, 64]
    std::vector<float> scores_;   ///< [row_block, key_block]
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
