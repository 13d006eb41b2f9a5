// The Plan: the one SPMD program that `plan` prints and `run` executes. Steps are compute on local shapes or
// collectives over named mesh axes; identical layers are planned once. A Plan is a value: made by make_plan, never
// changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/provider.h"
#include "diag/diagnostic.h"
#include "mesh/collective.h"
#include "model/graph.h"
#include "partition/layout.h"
#include "partition/partition_spec.h"
#include "partition/reshard.h"
#include "plan/job.h"
#include "plan/refined_mesh.h"
#include "plan/token_order.h"

namespace shardplan::plan {

// ---- tensors that live across steps: parameters and caches ----

enum class StoredKind : std::uint8_t { parameter, cache };

struct StoredTensor {
    StoredKind kind = StoredKind::parameter;
    int parameter = -1;  ///< index into Graph::parameters (parameters only)
    int block = -1;      ///< block and tensor id (caches only)
    model::TensorId tensor = -1;
    std::string name;         ///< checkpoint name with "{}" for the layer; caches "layers.{}.cache.k"
    std::string part;         ///< part of a fused checkpoint tensor
    std::string role;         ///< "column", "row", "embedding", "norm", "cache", ...
    std::vector<int> layers;  ///< instances; {-1} outside layers
    tensor::Shape shape;      ///< of one instance (of the part)
    /// i8: kept as 8 bit integers with one f32 scale for each (local) output channel, which counts in the bytes below.
    /// The scales are those of the part that a device holds: where the inputs are cut, each part has all outputs' own.
    tensor::DType dtype = tensor::DType::bf16;
    partition::PartitionSpec spec;  ///< for people: one entry per dimension of `shape`
    partition::Layout layout;       ///< on the refined mesh
    tensor::Shape local_shape;
    std::int64_t bytes = 0;             ///< one instance, unsharded
    std::int64_t bytes_per_device = 0;  ///< one instance
    std::int64_t replicas = 1;          ///< devices holding the same part
    int rule = -1;                      ///< index of the rule of the table that decided; -1 = none
    std::string reason;                 ///< which field, rule, default or correction decided the spec
};

// ---- one block ----

enum class ValueKind : std::uint8_t {
    input,  ///< token ids, or hidden from the block before
    activation,
    parameter,  ///< the stored shard itself; no memory of its own
    cache,      ///< the stored shard itself
    gathered,   ///< a copy of a parameter or cache in another layout; lives between steps
};

using ValueId = int;  ///< index into BlockPlan::values

/// What every device holds of one tensor in one layout.
struct Value {
    ValueKind kind = ValueKind::activation;
    model::TensorId tensor = -1;  ///< of the block's graph; -1 for statistics
    int stored = -1;              ///< index into Plan::stored for parameter and cache
    std::string name;             ///< "q", "q.weight", "attention.max", ...
    partition::Layout layout;     ///< on the refined mesh; pending = partial sums
    tensor::Shape shape;          ///< global
    tensor::Shape local_shape;
    tensor::DType dtype = tensor::DType::bf16;
    std::int64_t local_bytes = 0;
    /// The value whose memory this one shares (split and merge of heads, elementwise steps that work in place); -1 =
    /// its own memory.
    ValueId alias_of = -1;
    std::int64_t offset = -1;  ///< in the arena (BlockPlan::arena_bytes), for values with memory of their own
};

enum class ComputeKind : std::uint8_t {
    op,                 ///< the graph op as it stands, on local shapes
    norm_statistics,    ///< x -> f64 [rows, 2]: sum and sum of squares over the local part of the last dimension
    norm_apply,         ///< x, statistics (reduced), weight?, bias? -> y
    attention_partial,  ///< q, k, v -> o f32 (unnormalised), m f32 [b,s,h] maximum, l f32 [b,s,h] sum of exponentials
    attention_accumulate,  ///< q, k, v, o, m, l -> o, m, l in place: further keys added to the partial sums
    softmax_rescale,       ///< l, m, m of all -> l * exp(m - m of all)
    softmax_merge,    ///< o, m, m of all, l of all -> y = o * exp(m - m of all) / l of all; y is pending over the key
                      ///< axes
    fused_linear,     ///< x (norm weight?, norm bias?), w1, w2, .. (biases) -> y1, y2, ..: norm and one matmul
    dispatch_tokens,  ///< x, routing -> rows, their routing to the receiver's experts, their tokens (i32), counts (i64
                      ///< [n]): each token once for each rank of the group that holds experts of it
    dispatched_experts,  ///< rows, routing, counts of received rows, weights .. -> rows: the op experts on what came
    combine_tokens,      ///< rows that came back, tokens, counts -> [b,s,o]: sums the rows of each token
};

std::string_view to_string(ComputeKind kind);

struct ComputeStep {
    ComputeKind kind = ComputeKind::op;
    int op = -1;                 ///< index into the block's ops
    std::vector<int> fused_ops;  ///< fused_linear: all ops it stands for, in order
    std::string module;          ///< the provider's answer
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;
    /// attention_accumulate: the keys are those of the device that many positions before this one on their axes; in a
    /// loop that is the first pass, each further one takes one more.
    std::int64_t key_shift = 0;
    double flops = 0.0;  ///< per device, multiply and add counted as two
    /// fused_linear with a norm: the normalised input, which all its parts read; each part is written to its output,
    /// so that no room is needed for a joint result.
    std::int64_t scratch_bytes = 0;
    std::int64_t scratch_offset = -1;  ///< in the arena; -1 = needs none
    bool grouped = false;              ///< experts: one grouped product instead of one product after the other
    mesh::AxisList axes;               ///< dispatch_tokens: the group; axes[0] major
    mesh::AxisList expert_axes;        ///< dispatch_tokens: those of the weights' experts dimension
};

struct CollectiveStep {
    mesh::CollectiveKind kind = mesh::CollectiveKind::slice;
    mesh::AxisList axes;             ///< refined; axes[0] major
    std::vector<std::string> names;  ///< for people
    int dim = 0;
    int concat_dim = 0;
    /// permute: 0, blocks go where the two layouts say; else round a ring, to the position that many further on.
    /// Input and output may then be one value: staging holds the block that arrives.
    std::int64_t shift = 0;
    ValueId input = -1;
    ValueId output = -1;
    std::int64_t group_size = 1;
    std::int64_t payload_bytes = 0;     ///< of each device's input
    std::int64_t wire_bytes = 0;        ///< sent per device (mean over devices, rounded up)
    std::int64_t wire_bytes_total = 0;  ///< sent by all devices together
    std::int64_t staging_bytes = 0;
    std::int64_t staging_offset = -1;  ///< in the arena; -1 = needs none
    /// all_to_all_v only: values that hold the numbers of rows, i64 [n]; wire bytes are those of balanced experts, and
    /// these those of the worst routing. Input and output have room for the worst.
    ValueId send_counts = -1;
    ValueId receive_counts = -1;
    std::int64_t worst_wire_bytes_total = 0;
    std::string reason;  ///< "for o_proj: ..."
};

/// Exactly one of the two is set.
struct Step {
    std::optional<ComputeStep> compute;
    std::optional<CollectiveStep> collective;
    /// Values whose memory is free after this step.
    std::vector<ValueId> last_use;
    /// Neighbouring steps with the same number above 0 are the body of a loop, run `times` times.
    int loop = 0;
    std::int64_t times = 1;
    /// Neighbouring steps with the same number above 0 are executed as one: a reduce-scatter, elementwise steps and a
    /// norm on the part of the sum, the all-gather of the result.
    int joined = 0;
};

/// The outputs that come into being in a step: those that it does not change in place.
std::vector<ValueId> defined_values(const Step& step);

/// How a parallel weight with stored-over axes is used, and what the other way would move.
struct WeightUse {
    std::string op;
    bool gathered = true;                ///< false: stays in place while activations move
    std::int64_t chosen_bytes = 0;       ///< wire bytes per device of all reshards around the op
    std::int64_t alternative_bytes = 0;  ///< of the best placement of the other kind; -1 = there is none
};

/// How tokens reach experts on other devices, and what the other dispatcher would move.
struct DispatchUse {
    std::string op;
    bool all_to_all = false;
    std::vector<std::string> axes;        ///< of the experts, as far as tokens are cut over them
    std::int64_t chosen_bytes = 0;        ///< wire bytes per device of all moves around the op, experts balanced
    std::int64_t alternative_bytes = -1;  ///< -1 = the other dispatcher is not possible
    std::string reason;
};

/// How a block's attention gets at the keys of other devices, and what the other ways would cost. All figures are of
/// the whole block: its other collectives may depend on the way.
struct AttentionChoice {
    struct Way {
        CpCommType type = CpCommType::all_gather;
        std::int64_t wire_bytes = 0;  ///< sent per device
        std::int64_t peak_bytes = 0;  ///< activations and communication
        std::string refusal;          ///< why it is not possible; then there are no figures
    };
    CpCommType type = CpCommType::all_gather;
    std::vector<std::string> axes;  ///< that cut the sequence of queries and keys
    std::int64_t group_size = 1;
    std::vector<Way> ways;
    std::string reason;
};

struct BlockPlan {
    int block = 0;  ///< index into Graph::blocks
    std::string name;
    std::vector<int> layers;
    std::vector<Value> values;
    std::vector<Step> steps;
    std::optional<ValueId> input;  ///< hidden from the block before; token ids are a value of kind input too
    ValueId output = -1;
    std::int64_t peak_activation_bytes = 0;
    std::int64_t peak_communication_bytes = 0;  ///< gathered copies and staging
    /// Room for everything that lives within the block, at fixed offsets: activations, gathered copies, staging,
    /// scratch of fused steps. The input lies at 0, or at the end where the arena is used upside down (plan/arena.h);
    /// the output at the end, unless it is the input's memory.
    std::int64_t arena_bytes = 0;
    std::vector<WeightUse> weight_uses;
    std::vector<DispatchUse> dispatches;
    std::optional<AttentionChoice> attention;  ///< where an axis cuts both queries and keys
};

// ---- the whole ----

struct CollectiveTotal {
    mesh::CollectiveKind kind = mesh::CollectiveKind::slice;
    std::vector<std::string> axes;
    std::int64_t count = 0;                   ///< calls in one step of the model, over all stages of a pipeline
    std::int64_t payload_bytes = 0;           ///< sum over the calls, per device that takes part
    std::int64_t wire_bytes = 0;              ///< per device that takes part
    std::int64_t wire_bytes_total = 0;        ///< all devices
    std::int64_t worst_wire_bytes_total = 0;  ///< all_to_all_v: of the worst routing; else 0
};

struct MemoryPerDevice {
    std::int64_t parameters = 0;
    std::int64_t cache = 0;
    /// One block of memory that all blocks of the model use in turn; holds the two below and the scratch of fused
    /// steps. Their peaks need not fall on one step.
    std::int64_t arena = 0;
    std::int64_t activations = 0;    ///< at their peak
    std::int64_t communication = 0;  ///< gathered copies and staging at their peak
    std::int64_t total() const { return parameters + cache + arena; }
};

/// A run of uses of blocks that the devices with one coordinate on the pipeline axis compute.
struct Stage {
    int first = 0, end = 0;              ///< uses in Plan::sequence: [first, end)
    int first_layer = 0, end_layer = 0;  ///< layers of the model
    MemoryPerDevice memory;
    double flops_per_device = 0.0;  ///< of one micro-batch
    std::int64_t sent_bytes = 0;    ///< hidden states to the next stage, per device and micro-batch
};

struct Totals {
    std::int64_t parameters = 0;  ///< elements, each checkpoint element once
    std::int64_t parameter_bytes = 0;
    double flops_per_device = 0.0;    ///< of one step of the model, in the stage with the most
    double unsharded_fraction = 0.0;  ///< of the parameters: those that no axis of size > 1 cuts
};

/// The spec of an activation and why.
struct ActivationSpec {
    std::string name;  ///< "query", "hidden", ...
    partition::PartitionSpec spec;
    std::string reason;
};

struct Plan {
    Job job;
    model::Graph graph;
    RefinedMesh mesh;
    backend::ProviderDecision provider;
    TokenOrder token_order;
    std::vector<StoredTensor> stored;
    std::vector<ActivationSpec> activations;
    std::vector<BlockPlan> blocks;  ///< as Graph::blocks
    std::vector<model::BlockUse> sequence;
    std::vector<CollectiveTotal> collectives;   ///< by kind, then axes
    std::optional<mesh::AxisId> pipeline_axis;  ///< of the refined mesh
    std::vector<Stage> stages;                  ///< one without a pipeline
    MemoryPerDevice memory;                     ///< of the stage with the most
    Totals totals;
    std::vector<std::string> notes;  ///< axes counted as 1, defaults, ...
};

/// Runs all passes. nullopt when there are errors; warnings and notes also go to `diagnostics`.
std::optional<Plan> make_plan(const Job& job, diag::Diagnostics& diagnostics);

}  // namespace shardplan::plan
