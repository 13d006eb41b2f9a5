// BackendSpecProvider: which module computes what, the eight questions of Megatron-Core's protocol as pure functions
// (semantics.md 2.2; the columns Local, TE ("fused") and Inference). It answers "which module", never "where".
// Upstream's answers depend on what is installed; ours are those of an installation with Apex and Transformer Engine
// >= 1.9: LayerNorm of local is FusedLayerNorm, query/key norms of the others are TENorm, grouped linears exist.
// Local's layer_norm depends on its arguments only; upstream it also depends on earlier calls (2.2, the sticky global).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "model/graph.h"

namespace shardplan::backend {

enum class ProviderKind : std::uint8_t { local, fused, inference };
enum class ProviderChoice : std::uint8_t { local, fused, inference, automatic };
/// seed: core_v0.16.0; current: Megatron-LM head (semantics 2.2).
enum class ProviderCompat : std::uint8_t { seed, current };

std::string_view to_string(ProviderKind kind);
/// Accepts the aliases: fused = transformer_engine, inference = inference_optimized, "auto".
std::optional<ProviderChoice> parse_provider(std::string_view name);

/// Modules by name, e.g. "ColumnParallelLinear"; nullopt = None upstream.
using Module = std::string_view;

struct GroupedMlp {
    Module experts;
    std::optional<std::pair<Module, Module>> linears;  ///< column, row
    std::string_view warning;                          ///< empty = none
};

/// What a job says of grouped products; the arguments of grouped_mlp_modules.
struct ExpertOptions {
    std::optional<bool> use_grouped_gemm;  ///< nullopt: where the provider has them without a warning
    bool use_legacy_grouped_gemm = false;
    friend bool operator==(const ExpertOptions&, const ExpertOptions&) = default;
};

class BackendSpecProvider {
public:
    explicit BackendSpecProvider(ExpertOptions experts = {}) : experts_(experts) {}
    virtual ~BackendSpecProvider() = default;
    virtual ProviderKind kind() const = 0;
    const ExpertOptions& expert_options() const { return experts_; }

    virtual Module column_parallel_linear() const = 0;
    virtual Module row_parallel_linear() const = 0;
    virtual bool fuse_layernorm_and_linear() const = 0;
    virtual std::optional<Module> column_parallel_layer_norm_linear() const = 0;
    virtual Module layer_norm(bool rms_norm, bool for_qk) const = 0;
    virtual Module core_attention() const = 0;
    /// nullopt: the provider does not support experts (inference, seed).
    virtual std::optional<GroupedMlp> grouped_mlp_modules(bool moe_use_grouped_gemm,
                                                          bool moe_use_legacy_grouped_gemm) const = 0;
    virtual std::optional<Module> activation_func() const = 0;

private:
    ExpertOptions experts_;
};

/// grouped_mlp_modules with the provider's options.
std::optional<GroupedMlp> expert_modules(const BackendSpecProvider& provider);

/// Are the products of local experts one grouped product, or one after the other (SequentialMLP)?
bool experts_are_grouped(const BackendSpecProvider& provider);

std::unique_ptr<BackendSpecProvider> make_provider(ProviderKind kind, ProviderCompat compat,
                                                   const ExpertOptions& experts = {});

/// What decides whether a provider can be used, beside the model.
struct ProviderConditions {
    std::int64_t tensor_parallel = 1;  ///< devices over which heads are cut
    /// The residual stream is cut over those devices by tokens (sequence parallelism), or can be.
    bool sequence_parallel = false;
    bool tokens_divisible = true;             ///< tokens of a step are a multiple of tensor_parallel
    std::int64_t context_parallel = 1;        ///< devices over which the sequence of keys is cut
    std::int64_t expert_tensor_parallel = 1;  ///< devices over which each expert is cut
    ExpertOptions experts = {};
    bool int8_weights = false;  ///< the job wants them; only inference multiplies with them
};

struct ProviderDecision {
    ProviderKind kind = ProviderKind::local;
    std::vector<std::string> reasons;  ///< why this one, and why each other was not taken
};

/// The reasons why `kind` cannot run this model under these conditions (semantics 2.2, 2.6, 2.7 rows 29-31, 33, 80);
/// empty = it can.
std::vector<std::string> refusals(ProviderKind kind, ProviderCompat compat, const model::ModelSpec& model,
                                  const ProviderConditions& conditions);

/// What upstream would refuse and our kernels can do, or would compute otherwise: the plan is good, but it is not one
/// for Megatron (2.3, 2.7 rows 33, 35).
std::vector<std::string> remarks(ProviderKind kind, ProviderCompat compat, const model::ModelSpec& model,
                                 const ProviderConditions& conditions);

/// Takes the chosen provider (SP5001 at `pointer` when it is refused) or, for automatic, the best that is not refused:
/// inference for decode, fused for prefill, local as the last; with int8_weights inference or, where it is refused,
/// none (SP5001). An automatic choice is reported as SP5002.
std::optional<ProviderDecision> choose_provider(ProviderChoice choice, ProviderCompat compat,
                                                const model::ModelSpec& model, const model::Workload& workload,
                                                const ProviderConditions& conditions, const std::string& pointer,
                                                diag::Diagnostics& diagnostics);

/// The module that computes the op of a slot (semantics 2.3). `fused_norm` = this linear contains the norm before it,
/// or this norm is contained in the linear after it (then it is "IdentityOp" itself), as the provider wants where
/// fuse_layernorm_and_linear() holds; without effect on every other op. Kernels without an upstream module have names
/// of our own: PositionEmbedding, BiasAdd, SplitHeads, MergeHeads, RotaryEmbedding, KVCacheWrite, ElementwiseAdd,
/// ElementwiseScale, ElementwiseSoftcap, ElementwiseClip, SharedExpertGate, QueryTemperature, TakeComponents,
/// JoinComponents, AbsorbedHeadLinear (the up side of latent attention, multiplied to queries and outputs), and, where
/// activation_func() is None, GatedActivation and Activation; ReplicatedLinear for linears outside of the layer's slots
/// (projections around an embedding). Experts are those of expert_modules.
/// @pre fused_norm on a linear only when the provider has column_parallel_layer_norm_linear().
Module module_of(const BackendSpecProvider& provider, const model::Op& op, bool fused_norm);

}  // namespace shardplan::backend
