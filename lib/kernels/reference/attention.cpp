#include <algorithm>

#include "kernels/checks.h"
#include "kernels/reference/attention_rows.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

void attend(const AttentionProblem& problem, const BeginRow& begin, const FinishRow& finish) {
    if (problem.queries() == 1) {
        attend_one(problem, begin, finish);
    } else {
        attend_many(problem, begin, finish);
    }
}

void nothing_before(std::int64_t, AttentionRow&, float*) {}

/// Asks for elements that are soon written: the processor does not foresee short rows far apart.
void ask_for(const View& y, std::int64_t begin, std::int64_t count) {
    const auto* from = reinterpret_cast<const char*>(y.data) + begin * tensor::size_of(y.dtype);
    for (std::int64_t i = 0; i < count * tensor::size_of(y.dtype); i += 64) {
        __builtin_prefetch(from + i, 1);
    }
}

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
    attend(problem, nothing_before, [&](std::int64_t b, const AttentionRow& row, float* output) {
        const std::int64_t place = (b * problem.queries() + row.query) * problem.heads() + row.head;
        if (row.query + 2 < problem.queries()) {
            ask_for(y, (place + 2 * problem.heads()) * dv, dv);
        }
        const float factor = row.sum > 0.0F ? 1.0F / row.sum : 0.0F;
        for (std::int64_t i = 0; i < dv; ++i) {
            output[i] *= factor;
        }
        store_floats(output, dv, y, place * dv);
    });
}

void ReferenceKernels::attention_partial(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o,
                                         View m, View l) const {
    const AttentionProblem problem(q, k, v, params);
    const PartialSums sums = partial_sums("attention_partial", problem, o, m, l);
    const std::int64_t dv = problem.value_dim();
    attend(problem, nothing_before, [&](std::int64_t b, const AttentionRow& row, const float* output) {
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
    const auto place_of = [&](std::int64_t b, const AttentionRow& row) {
        return (b * problem.queries() + row.query) * problem.heads() + row.head;
    };
    attend(
        problem,
        [&](std::int64_t b, AttentionRow& row, float* output) {
            const std::int64_t place = place_of(b, row);
            std::copy_n(sums.o + place * dv, dv, output);
            row.max = sums.m[place];
            row.sum = sums.l[place];
        },
        [&](std::int64_t b, const AttentionRow& row, const float* output) {
            const std::int64_t place = place_of(b, row);
            std::copy_n(output, dv, sums.o + place * dv);
            sums.m[place] = row.max;
            sums.l[place] = row.sum;
        });
}

}  // namespace shardplan::kernels
