// The Graph: logical operations over logical (unsharded) tensors. It says what is computed, never where.
// Identical layers share one Block; a model is a short list of blocks and the sequence in which they run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_spec.h"
#include "model/workload.h"
#include "tensor/shape.h"

namespace shardplan::model {

/// What an activation is: decides which PartitionAxis fields apply (semantics 1a.4).
enum class TensorRole : std::uint8_t {
    token_ids,         ///< [b, s] i32
    hidden,            ///< [b, s, e] residual stream
    partial_hidden,    ///< [b, s, e] output of a row-parallel linear, on its way into the residual stream
    free,              ///< no field applies: the lowering chooses
    query_flat,        ///< [b, s, h*d]
    key_flat,          ///< [b, s, g*d], also values
    query,             ///< [b, s, h, d]
    key,               ///< [b, s, g, d], also values
    attention_output,  ///< [b, s, h, d]
    attention_merged,  ///< [b, s, h*d]
    mlp_intermediate,  ///< [b, s, f]
    logits,            ///< [b, s, v]
    kv_cache,          ///< [b, c, g, d]
    parameter,
};

enum class ParameterKind : std::uint8_t {
    embedding,           ///< [v, e]
    position_embedding,  ///< [p, e]
    column_linear,       ///< output dimension is the parallel one
    row_linear,          ///< input dimension is the parallel one
    replicated_linear,
    expert_column,       ///< [X, f, e]: as column_linear, for each expert
    expert_row,          ///< [X, e, f]
    router_bias,         ///< [X]
    expert_column_bias,  ///< [X, f]
    expert_row_bias,     ///< [X, e]
    sinks,               ///< [h]
    norm_weight,
    norm_bias,
    column_bias,
    row_bias,
};

/// The logical dimension along which a parameter can be parallel.
enum class ParallelDim : std::uint8_t { none, heads, kv_heads, mlp, vocab, experts };

/// Which rows of a fused checkpoint tensor's dimension `dim` belong to this part: for each of `groups` groups the rows
/// [group * stride + offset, + length). groups = 0: the whole tensor.
struct FusedView {
    int dim = 0;
    std::int64_t groups = 0;
    std::int64_t stride = 0;
    std::int64_t offset = 0;
    std::int64_t length = 0;
    friend bool operator==(const FusedView&, const FusedView&) = default;
};

/// A weight of experts has one more dimension in front, [X, out, in]. Where the checkpoint has a tensor for each
/// expert, the name contains "{expert}", and stored_shape and view are those of one expert's tensor.
struct Parameter {
    std::string name;  ///< in the checkpoint, "{}" = layer index: "model.layers.{}.self_attn.q_proj.weight"
    std::string part;  ///< "q", "k", "v", "gate", "up" for a part of a fused tensor, else ""
    ParameterKind kind = ParameterKind::column_linear;
    ParallelDim parallel = ParallelDim::none;
    tensor::Shape shape;         ///< of this part
    tensor::Shape stored_shape;  ///< of the whole checkpoint tensor
    FusedView view;
    bool transposed = false;   ///< linear stored [in, out] (Conv1D) instead of [out, in]
    double norm_offset = 0.0;  ///< norm weights: the value that means "no change" is 1 - norm_offset
};

enum class TensorKind : std::uint8_t { input, activation, parameter, cache };

struct TensorInfo {
    std::string name;  ///< "q", "attention.output", ...; for parameters the checkpoint name with its part
    TensorKind kind = TensorKind::activation;
    TensorRole role = TensorRole::free;
    tensor::Shape shape;
    tensor::DType dtype = tensor::DType::f32;
    int parameter = -1;  ///< index into Graph::parameters for parameters
};

using TensorId = int;  ///< index into Block::tensors

enum class OpKind : std::uint8_t {
    embedding,           ///< ids [b,s], table [v,e] -> [b,s,e]
    position_embedding,  ///< hidden [b,s,e] (shape and placement), table [p,e] -> [b,s,e]: rows of the tokens'
                         ///< positions
    norm,                ///< x, weight?, bias? -> normalised over the last dimension
    linear,              ///< x [b,s,i], w [o,i] -> [b,s,o]
    bias_add,            ///< x [b,s,o], bias [o]
    split_heads,         ///< [b,s,h*d] -> [b,s,h,d]
    merge_heads,         ///< [b,s,h,d] -> [b,s,h*d]
    rope,                ///< [b,s,h,d]
    attention,           ///< q [b,s,h,d], k [b,t,g,d], v [b,t,g,d], sinks [h]? -> [b,s,h,d]; causal
    cache_write,         ///< new keys or values [b,s,g,d] into the cache tensor (output) [b,c,g,d]
    add,                 ///< x + y
    glu,                 ///< activation(gate) * up
    activation,
    scale,
    softcap,  ///< c * tanh(x / c)
    clip,
    route,        ///< logits [b,s,X], correction bias [X]? -> f32 [b,s,X]: the weight of each expert, 0 if not chosen
    experts,      ///< x [b,s,e], routing [b,s,X], gate and up [X,f,e], down [X,o,f] and, if biased, their biases [X,f],
                  ///< [X,f], [X,o] -> [b,s,o]: sum over the experts of routing * down(activation(gate(x)) * up(x))
    gate_rows,    ///< x [b,s,e], gate [b,s,1] -> x * sigmoid(gate)
    temperature,  ///< q [b,s,h,d] -> q times a factor of its token's position (AttentionSpec::temperature_scale)
};

std::string_view to_string(OpKind kind);

/// The place of an op in a layer: what the backend provider is asked about (semantics 2.3).
enum class Slot : std::uint8_t {
    none,
    embedding,
    input_norm,  ///< before attention
    qkv,
    q_norm,
    k_norm,
    core_attention,
    attention_out,
    post_attention_norm,  ///< on the attention output (gemma2, olmo2)
    pre_mlp_norm,
    fc1,
    activation,
    fc2,
    router,
    experts,
    shared_router,  ///< the gate of the shared expert
    post_mlp_norm,
    final_norm,
    lm_head,
};

/// Attributes of every kind of op; each kind reads only its own.
struct OpAttributes {
    NormSpec norm;                     ///< norm
    double factor = 1.0;               ///< scale: the factor; embedding: multiplies the rows
    double limit = 0.0;                ///< softcap, clip
    std::int64_t position_offset = 0;  ///< position_embedding
    std::string activation;            ///< glu, activation, experts: HF name
    RoutingSpec routing;               ///< route; experts: top_k
    bool transposed = false;           ///< linear, experts' gate and up: the weight is stored [in, out]
    bool transposed_down = false;      ///< experts: down is
    bool biased = false;               ///< experts: three biases follow the weights
    double swiglu_limit = 0.0;         ///< experts: MoeSpec::swiglu_limit
    std::int64_t chunk = 0;            ///< attention
    bool sinks = false;                ///< attention: the last input
    double attention_scale = 0.0, attention_softcap = 0.0;  ///< attention
    std::int64_t window = 0;                                ///< attention
    bool from_cache = false;                                ///< attention: k and v are caches (decode)
    bool local_rope = false;                                ///< rope: AttentionSpec::local_rope instead of rope
    std::int64_t heads = 0, kv_heads = 0, head_dim = 0;  ///< attention, split_heads, merge_heads (heads of this tensor)
};

struct Op {
    OpKind kind = OpKind::add;
    std::string name;  ///< unique in the block: "q_proj", "attention", ...
    Slot slot = Slot::none;
    std::vector<TensorId> inputs;
    TensorId output = -1;
    OpAttributes attributes;
};

struct Block {
    std::string name;  ///< "embedding", "layer", "layer.sliding", "head"
    std::vector<TensorInfo> tensors;
    std::vector<Op> ops;            ///< in execution order
    std::optional<TensorId> input;  ///< hidden [b,s,e] from the block before
    TensorId output = -1;           ///< hidden, or logits for the last block
    std::vector<int> layers;        ///< indices of the layers that use this block; empty for embedding and head
};

struct BlockUse {
    int block = 0;
    int layer = -1;  ///< -1 for embedding and head
};

struct Graph {
    ModelSpec model;
    Workload workload;
    std::vector<Parameter> parameters;
    std::vector<Block> blocks;
    std::vector<BlockUse> sequence;
};

/// SP6002 for sizes below 1, too small a cache, and positions that a learned position table does not have.
void check_workload(const ModelSpec& model, const Workload& workload, diag::Diagnostics& diagnostics);

/// Builds the graph of one step. The copy of the model in the graph has the rope frequencies of the workload's length.
/// Throws base::OverflowError when a dimension does not fit in 64 bits.
/// @pre the workload fits the model (check_workload).
Graph build_graph(const ModelSpec& model, const Workload& workload);

/// The layers (indices) in which `parameter` exists: those of the blocks that use it; {-1} for embedding and head.
/// A parameter of several blocks (a tied embedding) is listed once.
std::vector<int> layers_of(const Graph& graph, int parameter);

/// Elements of the checkpoint: every layer's, a tied embedding once. Throws base::OverflowError.
std::int64_t parameter_count(const Graph& graph);

/// "model.layers.{}.x" with the layer put in; other names unchanged.
std::string name_in_layer(std::string_view pattern, int layer);

/// Does the checkpoint have one tensor for each expert of this parameter?
bool is_stored_per_expert(const Parameter& parameter);

/// The part of a parameter that is stored per expert which is one expert's: a parameter [out, in] of that name.
Parameter part_of_expert(const Parameter& parameter, std::int64_t expert);

/// The name of its tensor in a layer, of the first expert's where it is stored per expert.
std::string example_name(const Parameter& parameter, int layer);

/// The parts that have checkpoint tensors of their own: one for each expert where it is stored per expert, else the
/// parameter itself.
std::vector<Parameter> stored_parts(const Parameter& parameter);

}  // namespace shardplan::model
