// Parameters of the kernels that have more than shapes. All of them are plain values; spans are borrowed for the call.
// Positions and head numbers are global (of the unsharded model), buffers are local to the rank.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/activation.h"
#include "tensor/view.h"

namespace shardplan::kernels {

enum class NormKind : std::uint8_t { rms, layer };

struct NormParams {
    NormKind kind = NormKind::rms;
    double eps = 1e-5;
    float weight_offset = 0.0F;  ///< 1 where the model stores w of (1 + w): gemma
};

struct RopeParams {
    std::int64_t rotary_dim = 0;           ///< even; dimensions from here on pass through
    bool interleaved = false;              ///< pairs (2i, 2i+1) as gptj; else (i, i + rotary_dim / 2) as llama
    std::span<const float> inv_freq = {};  ///< rotary_dim / 2 values, rope scaling already applied
    float attention_factor = 1.0F;         ///< multiplies cos and sin (yarn)
};

struct AttentionParams {
    float scale = 1.0F;
    bool causal = true;
    float softcap = 0.0F;     ///< score = softcap * tanh(score / softcap); 0: none
    std::int64_t window = 0;  ///< a query at p sees the keys p - window + 1 .. p; 0: all
    std::int64_t chunk = 0;   ///< a query at p sees no key before p - p % chunk; 0: all

    std::span<const std::int64_t> q_start = {};  ///< [b] global position of local query row 0
    std::int64_t k_start = 0;                    ///< global position of local key 0
    std::span<const std::int64_t> k_valid = {};  ///< [b] keys that exist globally; rows behind are garbage, never read

    std::int64_t q_head_start = 0;    ///< global number of local query head 0
    std::int64_t kv_head_start = 0;   ///< global number of local key/value head 0
    std::int64_t queries_per_kv = 1;  ///< global query head h reads global kv head h / queries_per_kv

    /// ALiBi: adds slope * key position to the scaled score; one slope for each local query head, empty: none.
    std::span<const float> alibi_slopes = {};
    /// A further score of each local query head, neither scaled nor capped, whose value is 0; empty: none. Where keys
    /// are cut, one of the parts must have it.
    std::span<const float> sinks = {};
    bool alibi_in_bf16 = false;  ///< falcon: bf16(bf16(slope) * bf16(position)) is added before scaling
};

enum class RouterScore : std::uint8_t {
    softmax,       ///< over all experts
    top_softmax,   ///< over the chosen experts
    sigmoid,       ///< of each logit
    sparse_mixer,  ///< as phimoe: each of the top_k is taken in turn and weighed by a softmax over those near to it
};
enum class GroupScore : std::uint8_t { maximum, top_two_sum };

/// How the weights of experts follow from a router's logits. Of equal scores the expert of the lower number is chosen.
struct RouteParams {
    std::int64_t top_k = 1;
    RouterScore score = RouterScore::softmax;
    bool normalise = false;        ///< divide the weights of the chosen experts by their sum (+ 1e-20)
    double scale = 1.0;            ///< multiplies the weights
    double jitter = 0.01;          ///< sparse_mixer: logits within 2 * jitter * max(|logit|, best) of the best are near
    std::int64_t groups = 1;       ///< of neighbouring experts
    std::int64_t group_top_k = 1;  ///< experts outside of that many best groups are not chosen
    GroupScore group_score = GroupScore::maximum;
};

enum class WeightOrder : std::uint8_t {
    out_in,  ///< [N, K], torch.nn.Linear
    in_out,  ///< [K, N], Conv1D of gpt2
};

/// The local part of the experts' weights, [X, out, in] or [X, in, out]; biases may be absent.
struct ExpertWeights {
    tensor::ConstView gate, up, down;
    tensor::ConstView gate_bias, up_bias, down_bias;  ///< [X, f], [X, f], [X, o]
};

struct ExpertParams {
    Activation activation = Activation::silu;
    WeightOrder gate_up_order = WeightOrder::out_in;
    WeightOrder down_order = WeightOrder::out_in;
    float swiglu_limit = 0.0F;  ///< > 0: min(gate, limit) * sigmoid(1.702 gate) * (1 + up within +-limit), as gpt_oss
    bool scale_input = false;   ///< routing multiplies x instead of the result
    bool grouped = false;       ///< one grouped product over all experts instead of one after the other; same results
};

}  // namespace shardplan::kernels
