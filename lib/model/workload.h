// What the model is asked to do in one step.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/checked.h"
#include "tensor/dtype.h"

namespace shardplan::model {

enum class Mode : std::uint8_t {
    prefill,
    decode,  ///< one token of each sequence behind a cache
    insert,  ///< several tokens of each sequence behind a cache, into which they are written (EasyDeL's __insert__)
};

constexpr std::string_view to_string(Mode mode) {
    switch (mode) {
        case Mode::decode: return "decode";
        case Mode::insert: return "insert";
        case Mode::prefill: break;
    }
    return "prefill";
}

struct Workload {
    Mode mode = Mode::prefill;
    std::int64_t batch_size = 1;  ///< sequences over the whole mesh; in a plan those of one micro-batch
    /// prefill: tokens of each sequence in the step. decode, insert: tokens of each sequence that the cache holds when
    /// the step starts; a decode step itself has one token per sequence (the seed's rule: decode iff the query length
    /// is 1).
    std::int64_t sequence_length = 128;
    /// Positions the key/value cache can hold. 0 = in prefill no cache is kept, or in chunks one of sequence_length,
    /// else those of all tokens rounded up to a multiple of 16, which the planner rounds up further to what the key
    /// axes need.
    std::int64_t cache_length = 0;
    tensor::DType dtype = tensor::DType::bf16;  ///< of weights, activations and cache: f32 or bf16
    /// Prefill in chunks: a step has so many tokens of each sequence, and attends to the cache, which the chunks before
    /// have filled. 0 = all at once. sequence_length is a multiple of it.
    std::int64_t chunk_length = 0;
    /// Equal parts of the batch that go through the stages of a pipeline one behind the other.
    std::int64_t micro_batches = 1;
    /// insert: tokens of each sequence in the step.
    std::int64_t insert_length = 16;
    /// decode, insert: steps for which the cache must have room; more than one where tokens are generated.
    std::int64_t steps_ahead = 1;

    /// Whether the step stands behind sequence_length tokens in the cache: generation, as eformer calls it.
    bool continues() const { return mode != Mode::prefill; }
    bool chunked() const { return mode == Mode::prefill && chunk_length > 0; }
    /// Whether attention reads keys and values from the cache, those of the step among them.
    bool reads_cache() const { return continues() || chunked(); }
    /// Tokens of each sequence in one step.
    std::int64_t query_length() const {
        return mode == Mode::decode   ? 1
               : mode == Mode::insert ? insert_length
               : chunked()            ? chunk_length
                                      : sequence_length;
    }
    /// Positions of each sequence after the last step.
    std::int64_t positions() const {
        return continues() ? base::checked_add(sequence_length, base::checked_mul(steps_ahead, query_length()))
                           : sequence_length;
    }
    /// What a step of a plan is of, for headings.
    std::string_view step_name() const {
        return chunked() ? "one chunk" : micro_batches > 1 ? "one micro-batch" : "one step of the model";
    }
    /// Sequences of all micro-batches of a plan.
    std::int64_t total_batch() const { return batch_size * micro_batches; }
    /// Steps until the tokens of the workload are done.
    std::int64_t step_count() const { return chunked() ? sequence_length / chunk_length : 1; }
    /// Cache positions before any rounding for the key axes; 0 = no cache.
    std::int64_t cache_slots() const {
        if (cache_length > 0) {
            return cache_length;
        }
        if (mode == Mode::prefill) {
            return chunked() ? sequence_length : 0;
        }
        return base::checked_add(positions(), 15) / 16 * 16;
    }
};

}  // namespace shardplan::model
