// Compares the logits of a sharded run with those of the unsharded model. Both compute the same sums in another order,
// so they differ by rounding; the tolerances below bound what rounding does, and a wrong shard, mask or position misses
// them by orders of magnitude.
// An element passes when |a - b| <= absolute * max(1, rms(b)) + relative * |b|; NaN and infinities never pass. All
// elements must pass, and rms(a - b) / max(rms(b), tiny) must stay below `rms`.
#pragma once

#include <cstdint>

#include "exec/logits.h"
#include "tensor/dtype.h"

namespace shardplan::exec {

struct Tolerance {
    double absolute = 0.0;
    double relative = 0.0;
    double rms = 0.0;
};

/// f32: 2e-5 absolute and relative, 1e-5 rms, at any depth (transformers' own f32 and f64 differ by 3e-6).
/// bf16: both sides round every activation, in another order of sums, so each layer adds an independent error and the
/// relative rms grows as the square root of the depth; measured 4.8e-3 to 5.3e-3 per sqrt(layer) on llama-like models
/// of 2 to 8 layers. rms = 2 ulp * sqrt(layers + 1) with ulp = 2^-8; single elements within six times that, as the tail
/// of a normal distribution over up to 1e9 logits.
Tolerance tolerance_of(tensor::DType dtype, std::int64_t layers);

/// int8 weights, compared with the weights they were rounded from, add to that: each weight is off by at most
/// u = 1/254 of its channel's largest, evenly distributed, so by u / sqrt(3) of it in the mean square, and that is at
/// most 4.2 times the channel's rms (normal weights, 2^15 inputs). The signs are random, so that a product is off by
/// 2.4 u of itself; the three that a branch of a layer is made of in series (values or gate and up, the row linear, the
/// norm's input from the branch before) by sqrt(3) times that, 4.2 u. Branches are independent: the sum of them is off
/// by no larger part than each, and what later layers make of an error grows as the square root of the depth. rms =
/// 4.2 u * sqrt(layers + 1), single elements within six times that. Channels with outliers beyond 4.2 rms lose more,
/// and so do models that make more of an error: it is what to expect of rounding, not what a run must keep.
Tolerance int8_tolerance_of(tensor::DType dtype, std::int64_t layers);

struct Comparison {
    bool passed = false;
    Tolerance tolerance;
    std::int64_t compared = 0;
    std::int64_t failed = 0;      ///< elements
    std::int64_t not_finite = 0;  ///< elements of either side
    double max_absolute = 0.0;
    double max_relative = 0.0;  ///< |a - b| / max(|b|, rms(b))
    double relative_rms = 0.0;
    double reference_rms = 0.0;
    double own_rms = 0.0;  ///< bf16 only, where measured_tolerance() was needed: then the reference is the f32 one
    tensor::Shape worst;   ///< index of the element with the largest error
    float worst_value = 0.0F;
    float worst_reference = 0.0F;
};

/// Models that make more of a rounding (sharp softmax, an embedding that is small beside what the layers add) miss
/// that although no shard is wrong. Then rounding is measured: `own` compares the unsharded bf16 model with the same of
/// f32 activations. The sharded run is another rounding of the same model, so it must be as near to the f32 one: its
/// rms within 1.5 times that (samples of two errors of one size), single elements within six times it or twice the
/// worst of `own` (where few tokens have most of the error). The rms at most 0.1: a model that bf16 moves by more
/// proves nothing.
Tolerance measured_tolerance(const Tolerance& stated, const Comparison& own);

/// Throws std::invalid_argument when the shapes differ.
Comparison compare(const FloatTensor& values, const FloatTensor& reference, const Tolerance& tolerance);

}  // namespace shardplan::exec
