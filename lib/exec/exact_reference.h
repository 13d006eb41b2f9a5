// The unsharded model of a bf16 run with its sums and activations in f32: what both the sharded run and the unsharded
// bf16 model would give if nothing but the weights had been rounded.
#pragma once

#include <optional>

#include "exec/weights.h"

namespace shardplan::exec {

/// `reference` (bf16) with activations in f32; nothing where no plan is found, which does not happen for a plan that
/// has one in bf16.
std::optional<plan::Plan> in_f32(const plan::Plan& reference);

/// The weights of a source as bf16 holds them, whatever dtype is asked for.
class Bf16Weights final : public WeightSource {
public:
    /// `weights` must outlive it.
    explicit Bf16Weights(const WeightSource& weights) : weights_(weights) {}

protected:
    void fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                   tensor::View y) const override;

private:
    const WeightSource& weights_;
};

}  // namespace shardplan::exec
