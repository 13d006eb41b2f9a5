// One call of an attention kernel: its operands after all checks, and which keys each query sees. Knows nothing of the
// arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/interval.h"
#include "base/run.h"
#include "kernels/kernels.h"

namespace shardplan::kernels {

struct AttentionProblem {
    /// Throws std::invalid_argument unless shapes, dtypes and parameters fit. `params` must outlive it.
    AttentionProblem(ConstView queries, ConstView keys, ConstView values, const AttentionParams& params);

    ConstView q, k, v;
    const AttentionParams& params;
    std::vector<base::Run> key_runs;          ///< tile the keys; at least one
    std::vector<std::int64_t> query_offsets;  ///< of each local query row from q_start

    std::int64_t batch() const { return q.shape[0]; }
    std::int64_t queries() const { return q.shape[1]; }
    std::int64_t heads() const { return q.shape[2]; }
    std::int64_t keys() const { return k.shape[1]; }
    std::int64_t kv_heads() const { return k.shape[2]; }
    std::int64_t head_dim() const { return q.shape[3]; }
    std::int64_t value_dim() const { return params.value_dim > 0 ? params.value_dim : v.shape[3]; }

    std::int64_t kv_head_of(std::int64_t head) const {
        return (params.q_head_start + head) / params.queries_per_kv - params.kv_head_start;
    }
    /// The local query heads that read local kv head g.
    base::Interval heads_of(std::int64_t g) const {
        const std::int64_t first = (params.kv_head_start + g) * params.queries_per_kv - params.q_head_start;
        return base::intersect({0, heads()}, {first, first + params.queries_per_kv});
    }
    /// Local index of a key of `run` less its position.
    std::int64_t shift_of(const base::Run& run) const { return run.first - run.position - params.k_start; }
    /// The local keys of `run` that the query at position `p` of batch row b sees.
    base::Interval visible(std::int64_t b, std::int64_t p, const base::Run& run) const {
        std::int64_t end = params.k_valid[static_cast<std::size_t>(b)];
        if (params.causal) {
            end = std::min(end, p + 1);
        }
        std::int64_t begin = params.window > 0 ? p - params.window + 1 : 0;
        if (params.chunk > 0) {
            begin = std::max(begin, p / params.chunk * params.chunk);
        }
        const std::int64_t shift = shift_of(run);
        return base::intersect({run.first, run.first + run.count}, {begin + shift, end + shift});
    }
    std::int64_t position_of(std::int64_t b, std::int64_t query) const {
        return params.q_start[static_cast<std::size_t>(b)] + query_offsets[static_cast<std::size_t>(query)];
    }
    /// Does any query see any key?
    bool sees_any() const {
        for (std::int64_t b = 0; b < batch(); ++b) {
            for (std::int64_t query = 0; query < queries(); ++query) {
                for (const base::Run& run : key_runs) {
                    if (!visible(b, position_of(b, query), run).empty()) {
                        return true;
                    }
                }
            }
        }
        return false;
    }
};

}  // namespace shardplan::kernels
