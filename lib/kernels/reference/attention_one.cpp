#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/attention_rows.h"
#include "kernels/reference/decode_tiles.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

// Decode. Keys of one token lie beside each other for all heads, so the heads take turns within a few tokens: what is
// read from memory is one stream. The keys are cut into ranges, whose number follows from the number of keys alone;
// their sums are merged in order, so that the result does not depend on the threads.
namespace shardplan::kernels {
namespace {

using base::Interval;
using base::Run;
using tensor::DType;

/// Tokens whose keys, and whose values, all heads read before the next ones.
constexpr std::int64_t key_tokens = 8;
constexpr std::int64_t value_tokens = 8;
/// At most about so many ranges, each of whole blocks of keys, of which few are not worth the merging.
constexpr std::int64_t most_ranges = 32;
constexpr std::int64_t least_blocks = 2;

struct Range {
    std::int64_t b = 0;
    Interval keys;
    std::int64_t shift = 0;
    std::size_t run = 0;
};

std::vector<Range> ranges_of(const AttentionProblem& problem) {
    std::vector<Range> ranges;
    for (std::int64_t b = 0; b < problem.batch(); ++b) {
        for (std::size_t run = 0; run < problem.key_runs.size(); ++run) {
            const Run& keys = problem.key_runs[run];
            const Interval seen = problem.visible(b, problem.position_of(b, 0), keys);
            const std::int64_t blocks = std::max(least_blocks, seen.size() / key_block / most_ranges);
            for (std::int64_t begin = seen.begin; begin < seen.end;) {
                const std::int64_t end = std::min(seen.end, begin / key_block * key_block + blocks * key_block);
                ranges.push_back({b, {begin, end}, problem.shift_of(keys), run});
                begin = end;
            }
        }
    }
    return ranges;
}

/// What all heads sum over one range.
struct Sums {
    std::vector<AttentionRow> rows;
    std::vector<float> output;  ///< [h, dv] arranged and padded as decode_tiles.h says
};

template <typename T>
class OneQuery {
public:
    explicit OneQuery(const AttentionProblem& problem)
        : problem_(problem),
          functions_(decode_functions()),
          depth_(functions_.padded(problem.head_dim())),
          width_(functions_.padded(problem.value_dim())),
          queries_(static_cast<std::size_t>(problem.batch() * problem.heads() * depth_)) {
        for (std::int64_t i = 0; i < std::max(problem.head_dim(), problem.value_dim()); ++i) {
            places_.push_back(functions_.place(i, problem.q.dtype));
        }
        std::vector<float> row(static_cast<std::size_t>(problem.head_dim()));
        for (std::int64_t r = 0; r < problem.batch() * problem.heads(); ++r) {
            load_floats(problem.q, r * problem.head_dim(), problem.head_dim(), row.data());
            arrange(row.data(), problem.head_dim(), queries_.data() + r * depth_);
        }
    }

    void arrange(const float* row, std::int64_t count, float* to) const {
        for (std::int64_t i = 0; i < count; ++i) {
            to[places_[static_cast<std::size_t>(i)]] = row[i];
        }
    }
    void put_back(const float* arranged, std::int64_t count, float* row) const {
        for (std::int64_t i = 0; i < count; ++i) {
            row[i] = arranged[places_[static_cast<std::size_t>(i)]];
        }
    }

    /// Elements of a row of Sums::output.
    std::int64_t width() const { return width_; }

    void sum(const Range& range, Sums& sums) const {
        const AttentionProblem& p = problem_;
        sums.output.assign(static_cast<std::size_t>(p.heads() * width_), 0.0F);
        sums.rows.clear();
        for (std::int64_t h = 0; h < p.heads(); ++h) {
            sums.rows.push_back({0, h, p.position_of(range.b, 0), range.keys});
        }
        std::vector<float> scores(static_cast<std::size_t>(p.heads() * key_block));
        for (std::int64_t begin = range.keys.begin; begin < range.keys.end;) {
            const Interval keys{begin, end_of_block(begin, range.keys.end)};
            dot(range.b, keys, scores.data());
            for (AttentionRow& row : sums.rows) {
                const float factor = weigh(p, row, scores.data() + row.head * key_block, keys, range.shift);
                scale_values(sums.output.data() + row.head * width_, width_, factor);
            }
            add_values(range.b, keys, scores.data(), sums.output.data());
            begin = keys.end;
        }
    }

private:
    /// Calls visit(kv head, its query heads, first token, tokens) for some tokens at a time.
    template <typename Visit>
    void for_tokens(Interval keys, std::int64_t step, Visit visit) const {
        for (std::int64_t first = keys.begin; first < keys.end; first += step) {
            for (std::int64_t g = 0; g < problem_.kv_heads(); ++g) {
                const Interval heads = problem_.heads_of(g);
                if (!heads.empty()) {
                    visit(g, heads, first, std::min(step, keys.end - first));
                }
            }
        }
    }

    /// Asks for what the same head reads next: the processor does not foresee short rows far apart.
    static void fetch_rows(const T* from, std::int64_t stride, std::int64_t width, std::int64_t tokens,
                           std::int64_t left) {
        constexpr std::int64_t line = 64 / sizeof(T);
        for (std::int64_t row = 0; row < std::min(left, tokens); ++row) {
            for (std::int64_t i = 0; i < width; i += line) {
                __builtin_prefetch(from + row * stride + i);
            }
        }
    }

    void dot(std::int64_t b, Interval keys, float* scores) const {
        const AttentionProblem& p = problem_;
        const std::int64_t d = p.head_dim();
        const std::int64_t stride = p.kv_heads() * d;
        const T* all = p.k.as<T>() + b * p.keys() * stride;
        for_tokens(keys, key_tokens, [&](std::int64_t g, Interval heads, std::int64_t first, std::int64_t count) {
            fetch_rows(all + (first + key_tokens) * stride + g * d, stride, d, key_tokens,
                       keys.end - first - key_tokens);
            score_tile(functions_, {queries_.data() + (b * p.heads() + heads.begin) * depth_, depth_},
                       Matrix<const T>{all + first * stride + g * d, stride},
                       {scores + heads.begin * key_block + first - keys.begin, key_block}, {heads.size(), count, d});
        });
    }

    void add_values(std::int64_t b, Interval keys, const float* scores, float* output) const {
        const AttentionProblem& p = problem_;
        const std::int64_t dv = p.value_dim();
        const std::int64_t row = p.v.shape[3];
        const std::int64_t stride = p.kv_heads() * row;
        const T* all = p.v.as<T>() + b * p.keys() * stride;
        for_tokens(keys, value_tokens, [&](std::int64_t g, Interval heads, std::int64_t first, std::int64_t count) {
            fetch_rows(all + (first + value_tokens) * stride + g * row, stride, dv, value_tokens,
                       keys.end - first - value_tokens);
            value_tile(functions_, {scores + heads.begin * key_block + first - keys.begin, key_block},
                       Matrix<const T>{all + first * stride + g * row, stride}, {output + heads.begin * width_, width_},
                       {heads.size(), dv, count});
        });
    }

    const AttentionProblem& problem_;
    const DecodeFunctions& functions_;
    std::vector<std::int64_t> places_;  ///< of the elements of a row
    std::int64_t depth_;                ///< of a row of queries
    std::int64_t width_;
    std::vector<float> queries_;  ///< [b, h, d] arranged and padded
};

/// Adds what a range summed to a row that has seen the keys before it.
void merge(AttentionRow& row, float* output, const AttentionRow& part, const float* values, std::int64_t width) {
    const float max = std::max(row.max, part.max);
    if (max == no_score) {
        return;
    }
    const float before = std::exp(row.max - max);
    const float factor = std::exp(part.max - max);
    for (std::int64_t i = 0; i < width; ++i) {
        output[i] = output[i] * before + values[i] * factor;
    }
    row.sum = row.sum * before + part.sum * factor;
    row.max = max;
}

template <typename T>
void attend(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish) {
    const OneQuery<T> query(problem);
    const std::vector<Range> ranges = ranges_of(problem);
    std::vector<Sums> sums(ranges.size());
    const std::int64_t dv = problem.value_dim();
#pragma omp parallel if (worth_threads(problem.q.count() * problem.keys()))
    {
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < std::ssize(ranges); ++i) {
            query.sum(ranges[static_cast<std::size_t>(i)], sums[static_cast<std::size_t>(i)]);
        }
        std::vector<float> output(static_cast<std::size_t>(dv));
        std::vector<float> total(static_cast<std::size_t>(query.width()));
#pragma omp for collapse(2) schedule(static)
        for (std::int64_t b = 0; b < problem.batch(); ++b) {
            for (std::int64_t h = 0; h < problem.heads(); ++h) {
                AttentionRow row{0, h, problem.position_of(b, 0), {}};
                std::fill(output.begin(), output.end(), 0.0F);
                begin(b, row, output.data());
                query.arrange(output.data(), dv, total.data());
                for (std::size_t i = 0; i < ranges.size(); ++i) {
                    if (ranges[i].b == b) {
                        merge(row, total.data(), sums[i].rows[static_cast<std::size_t>(h)],
                              sums[i].output.data() + h * query.width(), query.width());
                    }
                }
                query.put_back(total.data(), dv, output.data());
                scale_values(output.data(), dv, add_sink(problem, row));
                finish(b, row, output.data());
            }
        }
    }
}

}  // namespace

void attend_one(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish) {
    if (problem.q.dtype == DType::f32) {
        attend<float>(problem, begin, finish);
    } else {
        attend<std::uint16_t>(problem, begin, finish);
    }
}

}  // namespace shardplan::kernels
