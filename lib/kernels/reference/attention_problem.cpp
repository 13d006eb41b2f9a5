#include "kernels/reference/attention_problem.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "kernels/checks.h"

namespace shardplan::kernels {
namespace {

using base::Run;

/// The runs of `count` rows: those given, which must tile them, or one.
std::vector<Run> runs_of(const char* name, std::span<const Run> given, std::int64_t count) {
    if (given.empty()) {
        return {{0, count, 0}};
    }
    std::int64_t next = 0;
    for (const Run& run : given) {
        if (run.first != next || run.count < 0) {
            reject("attention", fmt::format("a run of {} has {} rows from row {}, the next row is {}", name, run.count,
                                            run.first, next));
        }
        next += run.count;
    }
    check_length("attention", name, static_cast<std::size_t>(next), count);
    return {given.begin(), given.end()};
}

void check_params(const AttentionProblem& problem) {
    const AttentionParams& params = problem.params;
    check_length("attention", "q_start", params.q_start.size(), problem.batch());
    check_length("attention", "k_valid", params.k_valid.size(), problem.batch());
    if (!params.alibi_slopes.empty()) {
        check_length("attention", "alibi_slopes", params.alibi_slopes.size(), problem.heads());
    }
    if (!params.sinks.empty()) {
        check_length("attention", "sinks", params.sinks.size(), problem.heads());
    }
    if (params.value_dim < 0 || params.value_dim > problem.v.shape[3]) {
        reject("attention", fmt::format("values of {} components in rows of {}", params.value_dim, problem.v.shape[3]));
    }
    if (params.queries_per_kv < 1 || params.window < 0 || params.chunk < 0 || params.softcap < 0.0F) {
        reject("attention",
               fmt::format("queries_per_kv {} must be positive, window {}, chunk {} and softcap {} not negative",
                           params.queries_per_kv, params.window, params.chunk, params.softcap));
    }
    if (problem.heads() == 0) {
        return;
    }
    const std::int64_t lowest = problem.kv_head_of(0);
    const std::int64_t highest = problem.kv_head_of(problem.heads() - 1);
    if (lowest < 0 || highest >= problem.kv_heads()) {
        reject("attention", fmt::format("query heads {}..{} need kv heads {}..{}, here are {}..{}", params.q_head_start,
                                        params.q_head_start + problem.heads() - 1, params.kv_head_start + lowest,
                                        params.kv_head_start + highest, params.kv_head_start,
                                        params.kv_head_start + problem.kv_heads() - 1));
    }
}

void check_operands(const AttentionProblem& problem) {
    for (const auto& [name, view] :
         {std::pair{"q", &problem.q}, std::pair{"k", &problem.k}, std::pair{"v", &problem.v}}) {
        check_rank("attention", name, view->shape, 4);
        check_float("attention", name, view->dtype);
        check_dtype("attention", name, view->dtype, problem.q.dtype);
    }
    check_shape("attention", "k", problem.k.shape,
                {problem.batch(), problem.keys(), problem.kv_heads(), problem.head_dim()});
    check_shape("attention", "v", problem.v.shape,
                {problem.batch(), problem.keys(), problem.kv_heads(), problem.v.shape[3]});
}

}  // namespace

AttentionProblem::AttentionProblem(ConstView queries, ConstView keys, ConstView values, const AttentionParams& given)
    : q(std::move(queries)), k(std::move(keys)), v(std::move(values)), params(given) {
    check_operands(*this);
    check_params(*this);
    key_runs = runs_of("k_runs", params.k_runs, this->keys());
    for (const Run& run : runs_of("q_runs", params.q_runs, this->queries())) {
        for (std::int64_t i = 0; i < run.count; ++i) {
            query_offsets.push_back(run.position + i);
        }
    }
}

}  // namespace shardplan::kernels
