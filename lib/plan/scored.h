// A candidate placement of an op with what it costs, and which of two is better.
#pragma once

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "plan/candidates.h"

namespace shardplan::plan {

/// A candidate with everything that follows from it.
struct Scored {
    Candidate candidate;
    std::vector<partition::Layout> inputs;
    partition::Layout output;
    int displaced = 0;  ///< weights that lose axes of their parallel dimension
    int unwanted = 0;   ///< 1: another dispatcher of experts than the job asks for
    double bytes = std::numeric_limits<double>::infinity();
    double flops = 0.0;  ///< per device
    int collectives = 0;
    double work = 0.0;  ///< product of the local factor sizes

    /// Wire bytes, and the flops that a poor placement repeats on several devices at the price of the bytes an
    /// accelerator sends meanwhile (H100: 990 TFLOP/s bf16 and 450 GB/s of NVLink each way, about 2200 flop per byte).
    double cost() const {
        constexpr double flops_per_byte = 2048.0;
        return bytes + flops / flops_per_byte;
    }
};

inline bool better(const Scored& a, const Scored& b) {
    const auto key = [](const Scored& s) {
        return std::tuple(s.displaced, s.unwanted, std::llround(s.cost()), s.collectives, s.work);
    };
    if (std::isinf(a.bytes) || std::isinf(b.bytes)) {
        return a.bytes < b.bytes;
    }
    return key(a) < key(b);
}

}  // namespace shardplan::plan
