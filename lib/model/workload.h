// What the model is asked to do in one step.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace shardplan::model {

enum class Mode : std::uint8_t { prefill, decode };

constexpr std::string_view to_string(Mode mode) {
    return mode == Mode::prefill ? "prefill" : "decode";
}

struct Workload {
    Mode mode = Mode::prefill;
    std::int64_t batch_size = 1;  ///< sequences over the whole mesh
    /// prefill: tokens of each sequence in the step. decode: tokens of each sequence that the cache holds when the step
    /// starts; the step itself has one token per sequence (the seed's rule: decode iff the query length is 1).
    std::int64_t sequence_length = 128;
    /// Positions the key/value cache can hold. 0 = in prefill no cache is kept, in decode sequence_length + 1 rounded
    /// up to a multiple of 16 (decode_slots below), which the planner rounds up further to what the key axes need.
    std::int64_t cache_length = 0;
    tensor::DType dtype = tensor::DType::bf16;  ///< of weights, activations and cache: f32 or bf16

    std::int64_t query_length() const { return mode == Mode::prefill ? sequence_length : 1; }
    /// Cache positions before any rounding for the key axes; 0 = no cache.
    std::int64_t cache_slots() const {
        if (mode == Mode::prefill || cache_length > 0) {
            return cache_length;
        }
        return (sequence_length + 16) / 16 * 16;
    }
};

}  // namespace shardplan::model
