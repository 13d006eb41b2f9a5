#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/attention_rows.h"
#include "kernels/reference/attention_tiles.h"
#include "kernels/reference/decode_tiles.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/threads.h"

// Decode. Keys of one token lie beside each other for all heads, so the heads take turns within a few tokens, and what
// is to be read is asked for in one stream. The keys are cut into ranges, whose number follows from the number of keys
// alone; their sums are merged in order, so that the result does not depend on the threads.
namespace shardplan::kernels {
namespace {

using base::Interval;
using base::Run;
using tensor::DType;

/// All heads read the keys, or the values, of so many tokens before the next ones. Rows of one head that lie a power of
/// two apart share few places of the first cache: of long rows fewer are read in turn.
constexpr std::int64_t most_tokens = 16;
constexpr std::int64_t least_tokens = 8;
constexpr std::int64_t turn_bytes = 32768;
/// Memory is asked for so many bytes before it is read, in the order of addresses: whatever is read in strides reaches
/// half of what the memory gives.
constexpr std::int64_t ahead_bytes = 32768;
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
    std::vector<float> max, sum;  ///< [h]
    std::vector<float> output;    ///< [h, dv] arranged and padded as decode_tiles.h says
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
            for (float& value : row) {
                value *= problem.params.scale;
            }
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
        const std::int64_t heads = problem_.heads();
        sums.max.assign(static_cast<std::size_t>(heads), no_score);
        sums.sum.assign(static_cast<std::size_t>(heads), 0.0F);
        sums.output.assign(static_cast<std::size_t>(heads * width_), 0.0F);
        std::vector<float> factors(static_cast<std::size_t>(heads));
        std::vector<float> scores(static_cast<std::size_t>(heads * key_block));
        std::vector<Interval> seen(static_cast<std::size_t>(heads));
        const RunningSums running{sums.max.data(), sums.sum.data(), factors.data()};
        for (std::int64_t begin = range.keys.begin; begin < range.keys.end;) {
            const Interval keys{begin, end_of_block(begin, range.keys.end)};
            dot(range.b, keys, scores.data());
            for (std::int64_t h = 0; h < heads; ++h) {
                adjust_scores(problem_.params, scores.data() + h * key_block, keys, h, range.shift);
            }
            std::fill(seen.begin(), seen.end(), Interval{0, keys.size()});
            attention_functions().soften({scores.data(), key_block}, seen, running);
            for (std::int64_t h = 0; h < heads; ++h) {
                scale_values(sums.output.data() + h * width_, width_, factors[static_cast<std::size_t>(h)]);
            }
            add_values(range.b, keys, scores.data(), sums.output.data());
            begin = keys.end;
        }
    }

private:
    /// Rows of all keys or all values of one sequence.
    struct Stream {
        const T* data = nullptr;
        std::int64_t stride = 0;
        std::int64_t width = 0;  ///< elements between heads

        const T* row(std::int64_t token, std::int64_t g) const { return data + token * stride + g * width; }
        std::int64_t bytes(std::int64_t tokens) const { return tokens * stride * static_cast<std::int64_t>(sizeof(T)); }
    };

    /// What to ask for when `read` bytes of the rows of `keys` in `stream` are read: those some way on, in the order of
    /// memory, and behind the last those of `next` from its token `first` on.
    static const char* ahead(const Stream& stream, Interval keys, std::int64_t read, const Stream& next,
                             std::int64_t first) {
        const std::int64_t wanted = read + ahead_bytes;
        const std::int64_t size = stream.bytes(keys.size());
        const T* start = wanted < size ? stream.row(keys.begin, 0) : next.row(first, 0);
        return reinterpret_cast<const char*>(start) + (wanted < size ? wanted : wanted - size);
    }

    Stream keys_of(std::int64_t b) const { return stream_of(problem_.k, b); }
    Stream values_of(std::int64_t b) const { return stream_of(problem_.v, b); }
    Stream stream_of(const ConstView& view, std::int64_t b) const {
        const std::int64_t stride = problem_.kv_heads() * view.shape[3];
        return {view.as<T>() + b * problem_.keys() * stride, stride, view.shape[3]};
    }

    static std::int64_t tokens_of(const Stream& stream) {
        return stream.bytes(most_tokens) <= turn_bytes ? most_tokens : least_tokens;
    }

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

    void dot(std::int64_t b, Interval keys, float* scores) const {
        const AttentionProblem& p = problem_;
        const Stream stream = keys_of(b);
        const Stream next = values_of(b);
        for_tokens(
            keys, tokens_of(stream), [&](std::int64_t g, Interval heads, std::int64_t first, std::int64_t count) {
                const std::int64_t read = stream.bytes(first - keys.begin) + g * stream.bytes(count) / p.kv_heads();
                score_tile(functions_, {queries_.data() + (b * p.heads() + heads.begin) * depth_, depth_},
                           Matrix<const T>{stream.row(first, g), stream.stride},
                           {scores + heads.begin * key_block + first - keys.begin, key_block},
                           {heads.size(), count, p.head_dim()}, ahead(stream, keys, read, next, keys.begin));
            });
    }

    void add_values(std::int64_t b, Interval keys, const float* scores, float* output) const {
        const AttentionProblem& p = problem_;
        const Stream stream = values_of(b);
        const Stream next = keys_of(b);
        for_tokens(
            keys, tokens_of(stream), [&](std::int64_t g, Interval heads, std::int64_t first, std::int64_t count) {
                const std::int64_t read = stream.bytes(first - keys.begin) + g * stream.bytes(count) / p.kv_heads();
                value_tile(functions_, {scores + heads.begin * key_block + first - keys.begin, key_block},
                           Matrix<const T>{stream.row(first, g), stream.stride},
                           {output + heads.begin * width_, width_}, {heads.size(), p.value_dim(), count},
                           ahead(stream, keys, read, next, keys.end));
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
void merge(AttentionRow& row, float* output, float part_max, float part_sum, const float* values, std::int64_t width) {
    const float max = std::max(row.max, part_max);
    if (max == no_score) {
        return;
    }
    const float before = std::exp(row.max - max);
    const float factor = std::exp(part_max - max);
    for (std::int64_t i = 0; i < width; ++i) {
        output[i] = output[i] * before + values[i] * factor;
    }
    row.sum = row.sum * before + part_sum * factor;
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
                        merge(row, total.data(), sums[i].max[static_cast<std::size_t>(h)],
                              sums[i].sum[static_cast<std::size_t>(h)], sums[i].output.data() + h * query.width(),
                              query.width());
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
