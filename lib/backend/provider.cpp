#include "backend/provider.h"

#include <stdexcept>

namespace shardplan::backend {
namespace {

constexpr std::string_view legacy_grouped_warning =
    "GroupedMLP is deprecated upstream: it has no bias and runs in bf16 only";

constexpr std::pair<Module, Module> local_linears = {"ColumnParallelLinear", "RowParallelLinear"};
constexpr std::pair<Module, Module> fused_linears = {"TEColumnParallelLinear", "TERowParallelLinear"};
constexpr std::pair<Module, Module> grouped_linears = {"TEColumnParallelGroupedLinear", "TERowParallelGroupedLinear"};

class LocalProvider final : public BackendSpecProvider {
public:
    LocalProvider(ProviderCompat compat, const ExpertOptions& experts)
        : BackendSpecProvider(experts), compat_(compat) {}
    ProviderKind kind() const override { return ProviderKind::local; }
    Module column_parallel_linear() const override { return local_linears.first; }
    Module row_parallel_linear() const override { return local_linears.second; }
    bool fuse_layernorm_and_linear() const override { return false; }
    std::optional<Module> column_parallel_layer_norm_linear() const override { return std::nullopt; }
    Module layer_norm(bool rms_norm, bool /*for_qk*/) const override {
        return rms_norm ? "WrappedTorchNorm" : "FusedLayerNorm";
    }
    Module core_attention() const override { return "DotProductAttention"; }
    std::optional<GroupedMlp> grouped_mlp_modules(bool moe_use_grouped_gemm,
                                                  bool /*moe_use_legacy_grouped_gemm*/) const override {
        if (compat_ == ProviderCompat::seed && moe_use_grouped_gemm) {
            return GroupedMlp{"GroupedMLP", std::nullopt, legacy_grouped_warning};
        }
        return GroupedMlp{"SequentialMLP", local_linears, ""};
    }
    std::optional<Module> activation_func() const override { return std::nullopt; }

private:
    ProviderCompat compat_;
};

class FusedProvider final : public BackendSpecProvider {
public:
    FusedProvider(ProviderCompat compat, const ExpertOptions& experts)
        : BackendSpecProvider(experts), compat_(compat) {}
    ProviderKind kind() const override { return ProviderKind::fused; }
    Module column_parallel_linear() const override { return fused_linears.first; }
    Module row_parallel_linear() const override { return fused_linears.second; }
    bool fuse_layernorm_and_linear() const override { return true; }
    std::optional<Module> column_parallel_layer_norm_linear() const override {
        return "TELayerNormColumnParallelLinear";
    }
    Module layer_norm(bool /*rms_norm*/, bool /*for_qk*/) const override { return "TENorm"; }
    Module core_attention() const override { return "TEDotProductAttention"; }
    std::optional<GroupedMlp> grouped_mlp_modules(bool moe_use_grouped_gemm,
                                                  bool moe_use_legacy_grouped_gemm) const override {
        if (!moe_use_grouped_gemm) {
            return GroupedMlp{"SequentialMLP", fused_linears, ""};
        }
        // Later versions have no legacy grouped gemm: the argument is gone there.
        if (compat_ == ProviderCompat::seed && moe_use_legacy_grouped_gemm) {
            return GroupedMlp{"GroupedMLP", std::nullopt, legacy_grouped_warning};
        }
        return GroupedMlp{"TEGroupedMLP", grouped_linears, ""};
    }
    std::optional<Module> activation_func() const override { return "TEActivationOp"; }

private:
    ProviderCompat compat_;
};

class InferenceProvider final : public BackendSpecProvider {
public:
    InferenceProvider(ProviderCompat compat, const ExpertOptions& experts)
        : BackendSpecProvider(experts), compat_(compat) {}
    ProviderKind kind() const override { return ProviderKind::inference; }
    Module column_parallel_linear() const override {
        return compat_ == ProviderCompat::seed ? "TEColumnParallelLinear" : "InferenceColumnParallelLinear";
    }
    Module row_parallel_linear() const override { return "InferenceRowParallelLinear"; }
    bool fuse_layernorm_and_linear() const override { return true; }
    std::optional<Module> column_parallel_layer_norm_linear() const override {
        return "InferenceLayerNormColumnParallelLinear";
    }
    Module layer_norm(bool /*rms_norm*/, bool /*for_qk*/) const override { return "TENorm"; }
    Module core_attention() const override { return "TEDotProductAttention"; }
    std::optional<GroupedMlp> grouped_mlp_modules(bool /*moe_use_grouped_gemm*/,
                                                  bool /*moe_use_legacy_grouped_gemm*/) const override {
        if (compat_ == ProviderCompat::seed) {
            return std::nullopt;
        }
        return GroupedMlp{"InferenceGroupedMLP", grouped_linears, ""};
    }
    std::optional<Module> activation_func() const override { return "TEActivationOp"; }

private:
    ProviderCompat compat_;
};

}  // namespace

std::string_view to_string(ProviderKind kind) {
    switch (kind) {
        case ProviderKind::local: return "local";
        case ProviderKind::fused: return "fused";
        case ProviderKind::inference: return "inference";
    }
    throw std::invalid_argument("not a provider");
}

std::optional<ProviderChoice> parse_provider(std::string_view name) {
    if (name == "local") {
        return ProviderChoice::local;
    }
    if (name == "fused" || name == "transformer_engine") {
        return ProviderChoice::fused;
    }
    if (name == "inference" || name == "inference_optimized") {
        return ProviderChoice::inference;
    }
    if (name == "auto") {
        return ProviderChoice::automatic;
    }
    return std::nullopt;
}

std::unique_ptr<BackendSpecProvider> make_provider(ProviderKind kind, ProviderCompat compat,
                                                   const ExpertOptions& experts) {
    switch (kind) {
        case ProviderKind::local: return std::make_unique<LocalProvider>(compat, experts);
        case ProviderKind::fused: return std::make_unique<FusedProvider>(compat, experts);
        case ProviderKind::inference: return std::make_unique<InferenceProvider>(compat, experts);
    }
    throw std::invalid_argument("not a provider");
}

std::optional<GroupedMlp> expert_modules(const BackendSpecProvider& provider) {
    const ExpertOptions& options = provider.expert_options();
    const bool grouped = options.use_grouped_gemm.value_or(provider.kind() != ProviderKind::local);
    return provider.grouped_mlp_modules(grouped, options.use_legacy_grouped_gemm);
}

bool experts_are_grouped(const BackendSpecProvider& provider) {
    const auto modules = expert_modules(provider);
    return modules && modules->experts != "SequentialMLP";
}

}  // namespace shardplan::backend
