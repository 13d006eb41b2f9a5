// How a weight becomes int8: the rounding that prepare() does for WeightFormat::int8, for those who must know the
// values that products then use.
#pragma once

#include <span>

namespace shardplan::kernels {

/// Rounds the weights of one output to multiples of a scale, their largest magnitude / 127, and returns the scale.
/// `weights` become the integers in [-127, 127], as floats: a product uses integer * scale. Zeros, and what is too
/// small to have one, have scale 0; where one is infinite or no number the scale is NaN, so that no result hides it.
float quantise(std::span<float> weights);

}  // namespace shardplan::kernels
