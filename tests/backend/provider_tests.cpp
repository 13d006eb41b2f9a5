// Every answer of every provider, both versions (semantics 2.2).
#include "backend/provider.h"

#include <doctest/doctest.h>

#include <string>

using namespace shardplan::backend;

namespace {

constexpr ProviderCompat seed = ProviderCompat::seed;
constexpr ProviderCompat current = ProviderCompat::current;

struct Answers {
    ProviderKind kind;
    ProviderCompat compat;
    const char* column;
    const char* row;
    bool fuses;
    const char* column_with_norm;  ///< "" = None
    const char* layer_norm;
    const char* rms_norm;
    const char* core_attention;
    const char* activation;
};

const Answers table[] = {
    {ProviderKind::local, seed, "ColumnParallelLinear", "RowParallelLinear", false, "", "FusedLayerNorm",
     "WrappedTorchNorm", "DotProductAttention", ""},
    {ProviderKind::local, current, "ColumnParallelLinear", "RowParallelLinear", false, "", "FusedLayerNorm",
     "WrappedTorchNorm", "DotProductAttention", ""},
    {ProviderKind::fused, seed, "TEColumnParallelLinear", "TERowParallelLinear", true,
     "TELayerNormColumnParallelLinear", "TENorm", "TENorm", "TEDotProductAttention", "TEActivationOp"},
    {ProviderKind::fused, current, "TEColumnParallelLinear", "TERowParallelLinear", true,
     "TELayerNormColumnParallelLinear", "TENorm", "TENorm", "TEDotProductAttention", "TEActivationOp"},
    {ProviderKind::inference, seed, "TEColumnParallelLinear", "InferenceRowParallelLinear", true,
     "InferenceLayerNormColumnParallelLinear", "TENorm", "TENorm", "TEDotProductAttention", "TEActivationOp"},
    {ProviderKind::inference, current, "InferenceColumnParallelLinear", "InferenceRowParallelLinear", true,
     "InferenceLayerNormColumnParallelLinear", "TENorm", "TENorm", "TEDotProductAttention", "TEActivationOp"},
};

struct Experts {
    ProviderKind kind;
    ProviderCompat compat;
    bool grouped;
    bool legacy;
    const char* experts;  ///< "" = refused
    const char* column;   ///< "" = None
    const char* row;
    bool warns;
};

const Experts expert_table[] = {
    {ProviderKind::local, seed, false, false, "SequentialMLP", "ColumnParallelLinear", "RowParallelLinear", false},
    {ProviderKind::local, seed, false, true, "SequentialMLP", "ColumnParallelLinear", "RowParallelLinear", false},
    {ProviderKind::local, seed, true, false, "GroupedMLP", "", "", true},
    {ProviderKind::local, seed, true, true, "GroupedMLP", "", "", true},
    {ProviderKind::local, current, false, false, "SequentialMLP", "ColumnParallelLinear", "RowParallelLinear", false},
    {ProviderKind::local, current, true, false, "SequentialMLP", "ColumnParallelLinear", "RowParallelLinear", false},
    {ProviderKind::local, current, true, true, "SequentialMLP", "ColumnParallelLinear", "RowParallelLinear", false},
    {ProviderKind::fused, seed, false, false, "SequentialMLP", "TEColumnParallelLinear", "TERowParallelLinear", false},
    {ProviderKind::fused, seed, false, true, "SequentialMLP", "TEColumnParallelLinear", "TERowParallelLinear", false},
    {ProviderKind::fused, seed, true, false, "TEGroupedMLP", "TEColumnParallelGroupedLinear",
     "TERowParallelGroupedLinear", false},
    {ProviderKind::fused, seed, true, true, "GroupedMLP", "", "", true},
    {ProviderKind::fused, current, false, false, "SequentialMLP", "TEColumnParallelLinear", "TERowParallelLinear",
     false},
    {ProviderKind::fused, current, true, false, "TEGroupedMLP", "TEColumnParallelGroupedLinear",
     "TERowParallelGroupedLinear", false},
    {ProviderKind::fused, current, true, true, "TEGroupedMLP", "TEColumnParallelGroupedLinear",
     "TERowParallelGroupedLinear", false},
    {ProviderKind::inference, seed, false, false, "", "", "", false},
    {ProviderKind::inference, seed, true, false, "", "", "", false},
    {ProviderKind::inference, current, false, false, "InferenceGroupedMLP", "TEColumnParallelGroupedLinear",
     "TERowParallelGroupedLinear", false},
    {ProviderKind::inference, current, true, true, "InferenceGroupedMLP", "TEColumnParallelGroupedLinear",
     "TERowParallelGroupedLinear", false},
};

}  // namespace

TEST_CASE("the modules of every provider") {
    for (const Answers& row : table) {
        CAPTURE(to_string(row.kind));
        CAPTURE(row.compat == seed);
        const auto provider = make_provider(row.kind, row.compat);
        CHECK(provider->kind() == row.kind);
        CHECK(provider->column_parallel_linear() == row.column);
        CHECK(provider->row_parallel_linear() == row.row);
        CHECK(provider->fuse_layernorm_and_linear() == row.fuses);
        CHECK(provider->column_parallel_layer_norm_linear().value_or("") == row.column_with_norm);
        CHECK(provider->column_parallel_layer_norm_linear().has_value() == row.fuses);
        CHECK(provider->core_attention() == row.core_attention);
        CHECK(provider->activation_func().value_or("") == row.activation);
    }
}

TEST_CASE("layer_norm depends on its arguments only, not on the calls before") {
    for (const Answers& row : table) {
        const auto provider = make_provider(row.kind, row.compat);
        for (const bool for_qk : {false, true}) {
            CHECK(provider->layer_norm(false, for_qk) == row.layer_norm);
            CHECK(provider->layer_norm(true, for_qk) == row.rms_norm);
            CHECK(provider->layer_norm(false, for_qk) == row.layer_norm);
        }
    }
}

TEST_CASE("the modules of experts") {
    for (const Experts& row : expert_table) {
        CAPTURE(to_string(row.kind));
        CAPTURE(row.compat == seed);
        CAPTURE(row.grouped);
        CAPTURE(row.legacy);
        const auto found = make_provider(row.kind, row.compat)->grouped_mlp_modules(row.grouped, row.legacy);
        CHECK(found.has_value() == !std::string(row.experts).empty());
        if (!found) {
            continue;
        }
        CHECK(found->experts == row.experts);
        CHECK(found->linears.value_or(std::pair<Module, Module>("", "")).first == row.column);
        CHECK(found->linears.value_or(std::pair<Module, Module>("", "")).second == row.row);
        CHECK(found->warning.empty() == !row.warns);
    }
}

TEST_CASE("names of providers and their aliases") {
    CHECK(parse_provider("local") == ProviderChoice::local);
    CHECK(parse_provider("fused") == ProviderChoice::fused);
    CHECK(parse_provider("transformer_engine") == ProviderChoice::fused);
    CHECK(parse_provider("inference") == ProviderChoice::inference);
    CHECK(parse_provider("inference_optimized") == ProviderChoice::inference);
    CHECK(parse_provider("auto") == ProviderChoice::automatic);
    CHECK_FALSE(parse_provider("kitchen"));
    CHECK_FALSE(parse_provider(""));
    for (const ProviderKind kind : {ProviderKind::local, ProviderKind::fused, ProviderKind::inference}) {
        CHECK(parse_provider(to_string(kind)).has_value());
    }
}
