// The module of every slot of a layer (semantics 2.3), and of every kind of op without a slot.
#include <doctest/doctest.h>

#include "backend/provider.h"

using namespace shardplan;
using namespace shardplan::backend;
using model::OpKind;
using model::Slot;

namespace {

model::Op op_of(OpKind kind, Slot slot, model::NormKind norm = model::NormKind::rms) {
    model::Op op;
    op.kind = kind;
    op.slot = slot;
    op.attributes.norm.kind = norm;
    return op;
}

struct Row {
    OpKind kind;
    Slot slot;
    bool fused_norm;
    const char* local;
    const char* fused;
    const char* inference;
};

const Row table[] = {
    {OpKind::embedding, Slot::embedding, false, "VocabParallelEmbedding", "VocabParallelEmbedding",
     "VocabParallelEmbedding"},
    {OpKind::position_embedding, Slot::embedding, false, "PositionEmbedding", "PositionEmbedding", "PositionEmbedding"},
    {OpKind::norm, Slot::input_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::pre_mlp_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::post_attention_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::post_mlp_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::final_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::q_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::k_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::linear, Slot::qkv, false, "ColumnParallelLinear", "TEColumnParallelLinear", "TEColumnParallelLinear"},
    {OpKind::linear, Slot::fc1, false, "ColumnParallelLinear", "TEColumnParallelLinear", "TEColumnParallelLinear"},
    {OpKind::linear, Slot::attention_out, false, "RowParallelLinear", "TERowParallelLinear",
     "InferenceRowParallelLinear"},
    {OpKind::linear, Slot::fc2, false, "RowParallelLinear", "TERowParallelLinear", "InferenceRowParallelLinear"},
    {OpKind::linear, Slot::lm_head, false, "ColumnParallelLinear", "ColumnParallelLinear", "ColumnParallelLinear"},
    {OpKind::linear, Slot::none, false, "ReplicatedLinear", "ReplicatedLinear", "ReplicatedLinear"},
    {OpKind::attention, Slot::core_attention, false, "DotProductAttention", "TEDotProductAttention",
     "TEDotProductAttention"},
    {OpKind::glu, Slot::activation, false, "GatedActivation", "TEActivationOp", "TEActivationOp"},
    {OpKind::activation, Slot::activation, false, "Activation", "TEActivationOp", "TEActivationOp"},
    {OpKind::bias_add, Slot::qkv, false, "BiasAdd", "BiasAdd", "BiasAdd"},
    {OpKind::split_heads, Slot::none, false, "SplitHeads", "SplitHeads", "SplitHeads"},
    {OpKind::merge_heads, Slot::none, false, "MergeHeads", "MergeHeads", "MergeHeads"},
    {OpKind::rope, Slot::none, false, "RotaryEmbedding", "RotaryEmbedding", "RotaryEmbedding"},
    {OpKind::cache_write, Slot::none, false, "KVCacheWrite", "KVCacheWrite", "KVCacheWrite"},
    {OpKind::add, Slot::none, false, "ElementwiseAdd", "ElementwiseAdd", "ElementwiseAdd"},
    {OpKind::scale, Slot::none, false, "ElementwiseScale", "ElementwiseScale", "ElementwiseScale"},
    {OpKind::softcap, Slot::none, false, "ElementwiseSoftcap", "ElementwiseSoftcap", "ElementwiseSoftcap"},
    {OpKind::clip, Slot::none, false, "ElementwiseClip", "ElementwiseClip", "ElementwiseClip"},
    {OpKind::linear, Slot::router, false, "TopKRouter", "TopKRouter", "InferenceTopKRouter"},
    {OpKind::route, Slot::router, false, "TopKRouter", "TopKRouter", "InferenceTopKRouter"},
    {OpKind::linear, Slot::shared_router, false, "ReplicatedLinear", "ReplicatedLinear", "ReplicatedLinear"},
    {OpKind::gate_rows, Slot::shared_router, false, "SharedExpertGate", "SharedExpertGate", "SharedExpertGate"},
    {OpKind::temperature, Slot::none, false, "QueryTemperature", "QueryTemperature", "QueryTemperature"},
    // Latent attention (2.3, MLA).
    {OpKind::linear, Slot::q_down, false, "ColumnParallelLinear", "TELinear", "TELinear"},
    {OpKind::linear, Slot::kv_down, false, "ColumnParallelLinear", "TELinear", "TELinear"},
    {OpKind::linear, Slot::q_up, false, "ColumnParallelLinear", "TEColumnParallelLinear", "TEColumnParallelLinear"},
    {OpKind::linear, Slot::kv_up, false, "ColumnParallelLinear", "TEColumnParallelLinear", "TEColumnParallelLinear"},
    {OpKind::norm, Slot::latent_norm, false, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::latent_norm, true, "IdentityOp", "IdentityOp", "IdentityOp"},
    {OpKind::head_linear, Slot::kv_up, false, "AbsorbedHeadLinear", "AbsorbedHeadLinear", "AbsorbedHeadLinear"},
    {OpKind::take, Slot::none, false, "TakeComponents", "TakeComponents", "TakeComponents"},
    {OpKind::join, Slot::none, false, "JoinComponents", "JoinComponents", "JoinComponents"},
    // With the norm in the linear: only the norm before a column linear disappears, only that linear changes.
    {OpKind::norm, Slot::input_norm, true, "IdentityOp", "IdentityOp", "IdentityOp"},
    {OpKind::norm, Slot::pre_mlp_norm, true, "IdentityOp", "IdentityOp", "IdentityOp"},
    {OpKind::norm, Slot::final_norm, true, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::norm, Slot::q_norm, true, "WrappedTorchNorm", "TENorm", "TENorm"},
    {OpKind::linear, Slot::fc2, true, "RowParallelLinear", "TERowParallelLinear", "InferenceRowParallelLinear"},
    {OpKind::linear, Slot::lm_head, true, "ColumnParallelLinear", "ColumnParallelLinear", "ColumnParallelLinear"},
};

}  // namespace

TEST_CASE("modules by slot") {
    const auto local = make_provider(ProviderKind::local, ProviderCompat::seed);
    const auto fused = make_provider(ProviderKind::fused, ProviderCompat::seed);
    const auto inference = make_provider(ProviderKind::inference, ProviderCompat::seed);
    for (const Row& row : table) {
        const model::Op op = op_of(row.kind, row.slot);
        CAPTURE(row.kind);
        CAPTURE(row.slot);
        CHECK(module_of(*local, op, row.fused_norm) == row.local);
        CHECK(module_of(*fused, op, row.fused_norm) == row.fused);
        CHECK(module_of(*inference, op, row.fused_norm) == row.inference);
    }
}

TEST_CASE("column linears that contain their norm") {
    const auto fused = make_provider(ProviderKind::fused, ProviderCompat::current);
    const auto inference = make_provider(ProviderKind::inference, ProviderCompat::current);
    const auto local = make_provider(ProviderKind::local, ProviderCompat::current);
    for (const Slot slot : {Slot::qkv, Slot::q_up, Slot::kv_up, Slot::fc1}) {
        const model::Op op = op_of(OpKind::linear, slot);
        CHECK(module_of(*fused, op, true) == "TELayerNormColumnParallelLinear");
        CHECK(module_of(*inference, op, true) == "InferenceLayerNormColumnParallelLinear");
        CHECK(module_of(*inference, op, false) == "InferenceColumnParallelLinear");
        CHECK_THROWS(module_of(*local, op, true));
    }
}

TEST_CASE("experts are those of grouped_mlp_modules with the job's options") {
    struct Case {
        ProviderKind kind;
        ProviderCompat compat;
        ExpertOptions options;
        const char* module;
        bool grouped;
    };
    constexpr auto seed = ProviderCompat::seed;
    constexpr auto current = ProviderCompat::current;
    const Case cases[] = {
        {ProviderKind::local, seed, {}, "SequentialMLP", false},
        {ProviderKind::local, seed, {true, false}, "GroupedMLP", true},
        {ProviderKind::local, current, {true, false}, "SequentialMLP", false},
        {ProviderKind::fused, seed, {}, "TEGroupedMLP", true},
        {ProviderKind::fused, seed, {false, false}, "SequentialMLP", false},
        {ProviderKind::fused, seed, {std::nullopt, true}, "GroupedMLP", true},
        {ProviderKind::fused, current, {true, true}, "TEGroupedMLP", true},
        {ProviderKind::inference, current, {false, false}, "InferenceGroupedMLP", true},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.module));
        const auto provider = make_provider(c.kind, c.compat, c.options);
        CHECK(provider->expert_options() == c.options);
        CHECK(module_of(*provider, op_of(OpKind::experts, Slot::experts), false) == c.module);
        CHECK(experts_are_grouped(*provider) == c.grouped);
    }
    const auto none = make_provider(ProviderKind::inference, seed);
    CHECK_FALSE(expert_modules(*none));
    CHECK_FALSE(experts_are_grouped(*none));
}

TEST_CASE("the kind of the norm reaches the provider") {
    const auto local = make_provider(ProviderKind::local, ProviderCompat::seed);
    CHECK(module_of(*local, op_of(OpKind::norm, Slot::input_norm, model::NormKind::layer), false) == "FusedLayerNorm");
    CHECK(module_of(*local, op_of(OpKind::norm, Slot::none, model::NormKind::layer), false) == "FusedLayerNorm");
}
