// Where the values of parameters come from. Any rank can ask for any block of any parameter, and the values do not
// depend on how a parameter is cut.
#pragma once

#include <span>

#include "base/interval.h"
#include "plan/plan.h"
#include "tensor/view.h"

namespace shardplan::exec {

class WeightSource {
public:
    WeightSource() = default;
    WeightSource(const WeightSource&) = delete;
    WeightSource& operator=(const WeightSource&) = delete;
    virtual ~WeightSource() = default;

    /// y (f32 or bf16) = the block of `parameter` in `layer` (-1 outside of layers) given by one range per dimension of
    /// Parameter::shape, the part of a fused tensor counted from 0.
    void fill(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
              const tensor::View& y) const;

protected:
    /// The same for a parameter that has a checkpoint tensor of its own, or is part of one (model::stored_parts).
    virtual void fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                           tensor::View y) const = 0;

private:
    void fill_padded(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                     const tensor::View& y) const;
};

/// The ranges that take all of a tensor.
inline std::vector<base::Interval> whole_ranges(const tensor::Shape& shape) {
    std::vector<base::Interval> ranges;
    for (const std::int64_t size : shape) {
        ranges.push_back({0, size});
    }
    return ranges;
}

}  // namespace shardplan::exec
