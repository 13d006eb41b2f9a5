// ModelSpec: the facts of a decoder model that decide its tensors and its computation, read from a Hugging Face config.
// One small file per family (families/) knows that family's keys, defaults and tensor names and fills this struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "model/config_value.h"
#include "tensor/dtype.h"

namespace shardplan::model {

enum class NormKind : std::uint8_t { rms, layer };

struct NormSpec {
    NormKind kind = NormKind::rms;
    double eps = 1e-5;
    double weight_offset = 0.0;  ///< 1 when the stored weight w means a factor 1 + w (gemma)
    bool has_weight = true;      ///< false: olmo
    bool has_bias = false;
};

/// Rotary positions (Su et al. 2021). The inverse frequencies are computed once, with the scaling of the config applied
/// as transformers' modeling_rope_utils defines it (linear, dynamic, yarn, llama3, longrope).
struct RopeSpec {
    std::int64_t rotary_dim = 0;             ///< leading dimensions of each head that rotate; 0 = no rope
    bool interleaved = false;                ///< pairs (0,1),(2,3).. (gptj, cohere) instead of halves
    std::vector<float> inverse_frequencies;  ///< rotary_dim / 2 values
    double attention_factor = 1.0;           ///< multiplies cos and sin (yarn, longrope)

    /// What makes the frequencies depend on the length of the sequences; build_graph resolves it (rope_for_positions).
    std::vector<float> long_inverse_frequencies;  ///< longrope: those for more than `original_positions` positions
    std::int64_t original_positions = 0;          ///< longrope, dynamic: trained length; 0 = length does not matter
    double theta = 0.0;                           ///< dynamic: the base
    double dynamic_factor = 0.0;                  ///< dynamic: growth of the base beyond original_positions; 0 = none
};

enum class BlockLayout : std::uint8_t {
    sequential,  ///< x += attention(norm(x)); x += mlp(norm(x)), norms where the flags below say
    parallel,    ///< x += attention(norm1(x)) + mlp(norm2(x))
};

enum class QkNorm : std::uint8_t {
    none,
    per_head,  ///< over head_dim of each head after the split (qwen3, gemma3, phi)
    full,      ///< over all heads together before the split (olmo2, olmoe)
    l2,        ///< over head_dim, without weights, after the rotation; not in layers without positions (llama4)
};

/// How the checkpoint stores the query, key and value projections.
enum class QkvStorage : std::uint8_t {
    separate,      ///< three tensors
    concatenated,  ///< rows [q | k | v] (phi3, gpt2, falcon-7b, gpt_bigcode multi-query)
    grouped,  ///< per kv head: its query heads, its key, its value (falcon-40b; gpt_neox, bloom with one query each)
};

struct AttentionSpec {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    QkvStorage storage = QkvStorage::separate;
    bool q_bias = false;
    bool k_bias = false;
    bool v_bias = false;
    bool out_bias = false;
    QkNorm qk_norm = QkNorm::none;
    NormSpec qk_norm_spec;
    double scale = 0.0;          ///< multiplies q.k
    double logit_softcap = 0.0;  ///< 0 = none
    double qkv_clip = 0.0;       ///< clamp of q, k, v to [-c, c]; 0 = none (olmo)
    RopeSpec rope;
    RopeSpec local_rope;  ///< of the layers with LayerSpec::local_rope (gemma3, olmo3)
    bool sinks = false;   ///< each head has a logit that takes part in the softmax and has no value (gpt_oss)
    /// Queries of layers without positions are multiplied by 1 + scale * log(1 + floor((position + 1) / floor))
    /// (llama4); 0 = they are not.
    double temperature_scale = 0.0;
    double temperature_floor = 1.0;
    bool alibi = false;
    /// One per head; slope * key position is added to the scaled scores (bloom, mpt, baichuan).
    std::vector<float> alibi_slopes;
    /// Falcon: the slopes are bfloat16 values, the key position and its product with the slope are rounded to bfloat16,
    /// and the product is multiplied by `scale` before it is added.
    bool alibi_bf16 = false;
};

struct MlpSpec {
    std::int64_t intermediate = 0;
    bool gated = true;
    bool fused_gate_up = false;  ///< one tensor [gate | up] (phi3)
    std::string activation = "silu";
    bool up_bias = false;  ///< also of the gate
    bool down_bias = false;
};

/// How a router's score becomes the weight of an expert.
enum class RouterScore : std::uint8_t {
    softmax,       ///< over all experts
    top_softmax,   ///< over the logits of the chosen experts only (granitemoe, gpt_oss)
    sigmoid,       ///< of each logit (deepseek_v3)
    sparse_mixer,  ///< one expert after the other, each weighed among those close to it (phimoe); chooses two
};

/// The score of a group of experts, by which groups are chosen (deepseek).
enum class GroupScore : std::uint8_t { maximum, top_two_sum };

struct RoutingSpec {
    std::int64_t top_k = 1;  ///< experts per token
    RouterScore score = RouterScore::softmax;
    bool normalise = false;        ///< the weights of the chosen experts are divided by their sum
    double scale = 1.0;            ///< multiplies the weights
    double jitter = 0.01;          ///< sparse_mixer: relative distance up to which a score counts as close, halved
    std::int64_t groups = 1;       ///< the experts form so many groups of neighbours
    std::int64_t group_top_k = 1;  ///< only experts of that many best groups are chosen
    GroupScore group_score = GroupScore::maximum;
    bool correction_bias = false;  ///< a stored bias is added to the scores that choose, not to those that weigh
    bool scale_input = false;      ///< the weight multiplies the input of an expert, not its result (llama4)
};

/// How the checkpoint stores the experts' weights (X experts, f their intermediate size, e the hidden size).
enum class ExpertStorage : std::uint8_t {
    separate,     ///< three linears for each expert
    rows,         ///< stacked, [X, 2f, e] with [gate | up] and [X, e, f] (granitemoe)
    columns,      ///< stacked, [X, e, 2f] with [gate | up] and [X, f, e], without ".weight" (llama4)
    interleaved,  ///< the same, columns of gate and up take turns (gpt_oss)
    flat,         ///< gate, up and the transposed down [X * f, e] each, without ".weight" (dbrx)
};

/// The mixture of experts of the layers with LayerSpec::moe; activation as MlpSpec says, all of them gated.
struct MoeSpec {
    std::int64_t experts = 0;       ///< 0 = the model has none
    std::int64_t intermediate = 0;  ///< of each expert
    RoutingSpec routing;
    ExpertStorage storage = ExpertStorage::separate;
    bool bias = false;         ///< of gate, up and down; the names end in "_bias"
    bool router_bias = false;  ///< of the router's linear
    /// > 0: the gate is clamped to at most this, up to within it, and activation(gate) * up becomes
    /// gate * sigmoid(1.702 * gate) * (up + 1) (gpt_oss).
    double swiglu_limit = 0.0;
    std::int64_t shared_intermediate = 0;  ///< of the expert that every token passes; 0 = none
    bool shared_gate = false;              ///< its result is multiplied by sigmoid(gate(x)) (qwen2_moe)
    bool shared_fused = false;             ///< its [gate | up] are one tensor
};

/// Names in the checkpoint; "{}" stands for the layer index, "{expert}" for that of an expert. Empty = the tensor does
/// not exist. ".weight" and ".bias" are appended.
struct TensorNames {
    std::string embedding, position_embedding, embedding_norm, project_in, project_out;
    std::string q, k, v, qkv, out;
    std::string q_norm, k_norm;
    std::string sinks;  ///< the whole name, nothing is appended
    std::string gate, up, gate_up, down;
    std::string router;
    std::string router_correction;  ///< the whole name, nothing is appended
    std::string expert_gate, expert_up, expert_gate_up, expert_down;
    std::string shared_gate, shared_up, shared_gate_up, shared_down, shared_router;
    std::string pre_attention_norm, post_attention_norm, pre_mlp_norm, post_mlp_norm;
    std::string final_norm, lm_head;
    /// Further names of tensors that checkpoints of the family may hold and that are ignored, as std::regex.
    std::vector<std::string> ignored;
    /// Prefix that checkpoints may leave out ("transformer." of gpt2).
    std::string optional_prefix;
};

/// How the checkpoint's weights are quantised, as far as it restricts where they can be cut. 0 = no restriction.
struct QuantizationSpec {
    std::int64_t group = 0;  ///< consecutive inputs that share a scale (group_size, columns of weight_block_size)
    std::int64_t rows = 0;   ///< consecutive outputs that share a scale (rows of weight_block_size)
};

/// What differs between layers.
struct LayerSpec {
    std::int64_t sliding_window = 0;  ///< keys a query sees, itself included; 0 = all
    std::int64_t chunk = 0;           ///< keys seen lie in the query's own chunk of so many positions; 0 = all
    bool rope = true;                 ///< false: no positions in this layer (smollm3, llama4 every n-th)
    bool local_rope = false;          ///< true: AttentionSpec::local_rope instead of rope
    bool moe = false;                 ///< true: ModelSpec::moe instead of the mlp
    friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

struct ModelSpec {
    std::string family;      ///< name of the family file
    std::string model_type;  ///< as written
    std::int64_t hidden = 0;
    std::int64_t vocab = 0;
    std::int64_t max_positions = 0;    ///< 0 = not stated
    std::int64_t embedding_width = 0;  ///< of the token embedding when it differs from hidden (opt-350m); 0 = hidden
    std::int64_t position_rows = 0;    ///< rows of the learned position table; 0 = none
    std::int64_t position_offset = 0;  ///< token p uses row p + offset (opt: 2)
    BlockLayout layout = BlockLayout::sequential;
    bool norm_after_residual =
        false;                 ///< x = norm(x + f(x)) instead of x + f(norm(x)) (opt with do_layer_norm_before = false)
    bool shared_norm = false;  ///< parallel: one norm feeds attention and mlp (pre_mlp_norm unused)
    bool conv1d = false;       ///< linear weights stored [in, out] (gpt2)
    bool final_norm = true;
    NormSpec norm;
    AttentionSpec attention;
    MlpSpec mlp;
    MoeSpec moe;
    std::vector<LayerSpec> layers;  ///< one per layer
    TensorNames names;
    bool tied_embeddings = false;
    bool lm_head_bias = false;
    double embedding_scale = 1.0;  ///< gemma: sqrt(hidden) rounded to the dtype by the builder
    double residual_scale = 1.0;   ///< granite
    double logit_scale = 1.0;      ///< multiplies the logits (granite 1/logits_scaling, cohere logit_scale)
    double logit_softcap = 0.0;    ///< gemma2
    QuantizationSpec quantization;
    tensor::DType stored_dtype = tensor::DType::bf16;  ///< torch_dtype
    std::vector<std::string> notes;                    ///< defaults taken, parts left out: shown with the plan

    std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
};

/// Reads a Hugging Face config. Errors: SP2001 (no model_type), SP2002 (family or feature not supported; names it and
/// the supported families), SP1005/SP1006/SP1007 (types, ranges, missing fields), SP2003 (contradictions). All at once.
std::optional<ModelSpec> read_model(const ConfigValue& config, diag::Diagnostics& diagnostics);

/// The model types read_model accepts, sorted.
std::vector<std::string> supported_model_types();

}  // namespace shardplan::model
