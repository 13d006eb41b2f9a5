// Loops over rows: the oracle the other implementation is compared with, which takes from here all that it does not do
// faster. Sums in float, those of norms in double.
#pragma once

#include "kernels/kernels.h"

namespace shardplan::kernels {

class ReferenceKernels : public Kernels {
public:
    std::string describe() const override;

    std::unique_ptr<Weight> prepare(ConstView w, WeightOrder order,
                                    WeightFormat format = WeightFormat::plain) const override;
    void matmul(ConstView x, const Weight& w, View y) const override;
    void matmul_parts(ConstView x, std::span<const Weight* const> ws, std::span<const View> ys) const override;
    void matmul_plain(ConstView x, ConstView w, WeightOrder order, View y) const override;

    void norm(ConstView x, ConstView w, ConstView b, const NormParams& params, View y) const override;
    void norm_statistics(ConstView x, View stats) const override;
    void norm_apply(ConstView x, ConstView stats, std::int64_t global_size, ConstView w, ConstView b,
                    const NormParams& params, View y) const override;

    void embedding(ConstView ids, ConstView table, std::int64_t first_row, float scale, View y) const override;
    void rope(ConstView x, std::span<const std::int64_t> start, const RopeParams& params, View y) const override;

    void take(ConstView x, std::int64_t first, View y) const override;
    void join(ConstView x, ConstView tail, View y) const override;
    void head_matmul(ConstView x, ConstView w, WeightOrder order, View y) const override;

    void attention(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View y) const override;
    void attention_partial(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o, View m,
                           View l) const override;
    void attention_accumulate(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o, View m,
                              View l) const override;
    void softmax_rescale(ConstView l, ConstView m, ConstView m_global, View l_scaled) const override;
    void softmax_merge(ConstView o, ConstView m, ConstView m_global, ConstView l_global, View y) const override;

    void route(ConstView logits, ConstView correction, const RouteParams& params, View routing) const override;
    void experts(ConstView x, ConstView routing, const ExpertWeights& weights, const ExpertParams& params,
                 View y) const override;
    void grouped_matmul(ConstView x, ConstView w, WeightOrder order, std::span<const std::int64_t> first_rows,
                        View y) const override;

    void activate(ConstView x, Activation activation, View y) const override;
    void glu(ConstView gate, ConstView up, Activation activation, View y) const override;
    void add(ConstView a, ConstView b, View y) const override;
    void add_bias(ConstView x, ConstView bias, View y) const override;
    void scale(ConstView x, float factor, View y) const override;
    void gate_rows(ConstView x, ConstView gate, View y) const override;
    void scale_rows(ConstView x, std::span<const float> factors, View y) const override;
    void softcap(ConstView x, float cap, View y) const override;
    void clip(ConstView x, float limit, View y) const override;
    void convert(ConstView x, View y) const override;

    void write_cache(ConstView k, std::span<const std::int64_t> first, std::int64_t cache_start,
                     View cache) const override;
};

}  // namespace shardplan::kernels
