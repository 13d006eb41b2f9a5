// The weights as the ranks of a plan with int8 weights keep them, put together again: for the unsharded model that such
// a run must equal. Where ranks cut the inputs of a weight, each part is rounded with scales of its own, as each rank
// does; how the outputs are cut does not matter.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "exec/weights.h"

namespace shardplan::exec {

class RoundedWeights final : public WeightSource {
public:
    /// Both must outlive it.
    RoundedWeights(const WeightSource& weights, const plan::Plan& plan);

protected:
    /// integer * scale in the dtype of y: f32 holds what a product uses, bf16 rounds it once more.
    void fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                   tensor::View y) const override;

private:
    const WeightSource& weights_;
    tensor::DType dtype_;  ///< in which ranks read what they round
    /// Name, part and layer of each int8 weight -> the intervals into which its inputs are cut, in order.
    std::map<std::tuple<std::string, std::string, int>, std::vector<base::Interval>> cuts_;
};

}  // namespace shardplan::exec
