// Random weights from a counter-based generator: the value of an element depends on the seed, the checkpoint name in
// its layer, the part of a fused tensor and the index in that part, on nothing else.
// Scales keep activations and logits of the order of 1, whatever the model's own multipliers: linears 1/sqrt(fan_in),
// the head also divided by the model's logit scale, norm weights 1 +- 0.1, biases 0.1.
#pragma once

#include "exec/weights.h"

namespace shardplan::exec {

class SeededWeights final : public WeightSource {
public:
    SeededWeights(std::uint64_t seed, const model::ModelSpec& model);

private:
    void fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                   tensor::View y) const override;

    struct Distribution {
        double scale = 1.0;
        double mean = 0.0;
    };
    Distribution distribution(const model::Parameter& parameter) const;

    std::uint64_t seed_;
    double embedding_scale_;
    double position_scale_;
    double head_factor_;
};

}  // namespace shardplan::exec
