// Latent attention: where its weights and its cache lie, what a layer moves, which modules compute it.
#include "plan/planning.h"

namespace shardplan::plan {

using test::block_of;
using test::JobText;
using test::moves;
using test::plan_of;
using test::spec;
using test::stored;

namespace {

const char* const deepseek = R"("model_type": "deepseek_v3", "hidden_size": 64,
    "num_attention_heads": 8, "num_hidden_layers": 2, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 6, "intermediate_size": 96)";
const char* const decode = R"("mode": "decode", "batch_size": 4, "sequence_length": 16)";
const char* const megatron = R"("hidden_state_axis": null)";

std::string modules_of(const Plan& plan, const std::string& op) {
    const BlockPlan& block = block_of(plan, "layer");
    const model::Block& graph = plan.graph.blocks[static_cast<std::size_t>(block.block)];
    std::string text;
    for (const Step& step : block.steps) {
        if (!step.compute) {
            continue;
        }
        std::vector<int> ops = step.compute->fused_ops;
        ops.push_back(step.compute->op);
        const bool has = std::any_of(ops.begin(), ops.end(),
                                     [&](int i) { return graph.ops[static_cast<std::size_t>(i)].name == op; });
        text += has ? (text.empty() ? "" : ", ") + step.compute->module : "";
    }
    return text;
}

}  // namespace

TEST_CASE("heads over tp, latents whole, all weights stored over fsdp") {
    const Plan plan =
        plan_of({.mesh = R"("fsdp": 2, "tp": 4)", .axes = megatron, .workload = decode, .model = deepseek});
    CHECK(spec(plan, "q_a_proj") == "P(None,'fsdp')");
    CHECK(spec(plan, "kv_a_proj_with_mqa") == "P(None,'fsdp')");
    CHECK(spec(plan, "q_b_proj") == "P('tp','fsdp')");
    CHECK(spec(plan, "kv_b_proj") == "P('tp','fsdp')");
    CHECK(spec(plan, "o_proj") == "P('fsdp','tp')");
    CHECK(spec(plan, "kv_a_layernorm") == "P(None,)");
    CHECK(spec(plan, "cache.latent") == "P('fsdp',None,None,None)");
    CHECK(stored(plan, "cache.latent").local_shape == tensor::Shape{2, 32, 1, 20});
    CHECK(stored(plan, "cache.latent").replicas == 4);
}

TEST_CASE("what a layer moves") {
    struct Row {
        const char* name;
        JobText job;
        const char* layer;
    };
    const Row rows[] = {
        {"prefill on tp: two sums, as any attention",
         {.mesh = R"("tp": 4)", .axes = megatron, .model = deepseek},
         "all-reduce tp o_proj.out; all-reduce tp down_proj.out"},
        {"expanded decode on tp",
         {.mesh = R"("tp": 4)", .axes = megatron, .workload = decode, .model = deepseek},
         "all-reduce tp o_proj.out; all-reduce tp down_proj.out"},
        {"absorbed decode on tp: sequences over tp outside of the attention",
         {.mesh = R"("tp": 4)", .axes = megatron, .workload = decode, .backend = "inference", .model = deepseek},
         "all-gather tp q_a_norm.out; all-gather tp cache_row.out; reduce-scatter tp o_proj.out; "
         "all-gather tp pre_mlp_norm.out; reduce-scatter tp down_proj.out"},
        {"sequence on sp: keys and values are gathered",
         {.mesh = R"("sp": 4)",
          .axes = R"("weight_storage_axis": null)",
          .options = R"("cp_comm_type": "all_gather")",
          .model = deepseek},
         "all-gather sp k_join.out; all-gather sp v_split.out"},
        {"expanded decode with the cache on sp: partial softmaxes are merged",
         {.mesh = R"("sp": 4)", .axes = R"("weight_storage_axis": null)", .workload = decode, .model = deepseek},
         "all-reduce-max sp attention.max; all-reduce sp attention.rescaled; all-reduce sp attention.output"},
        {"absorbed, the cache on sp: the outputs are summed after the up projection, narrower than the latents",
         {.mesh = R"("sp": 4)",
          .axes = R"("weight_storage_axis": null)",
          .workload = decode,
          .backend = "inference",
          .model = deepseek},
         "all-reduce-max sp attention.max; all-reduce sp attention.rescaled; all-reduce sp v_absorb.out"},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.name));
        CHECK(moves(block_of(plan_of(row.job), "layer")) == row.layer);
    }
}

TEST_CASE("modules of latent attention by provider") {
    struct Row {
        const char* op;
        const char* local;
        const char* fused;
        const char* inference;
    };
    const Row rows[] = {
        {"input_norm", "WrappedTorchNorm", "TENorm", "TENorm"},
        {"q_a_proj", "ColumnParallelLinear", "TELinear", "TELinear"},
        {"kv_a_proj", "ColumnParallelLinear", "TELinear", "TELinear"},
        {"q_a_norm", "WrappedTorchNorm", "TELayerNormColumnParallelLinear", "InferenceLayerNormColumnParallelLinear"},
        {"q_b_proj", "ColumnParallelLinear", "TELayerNormColumnParallelLinear",
         "InferenceLayerNormColumnParallelLinear"},
        {"kv_a_norm", "WrappedTorchNorm", "TELayerNormColumnParallelLinear", "InferenceLayerNormColumnParallelLinear"},
        {"k_b_proj", "ColumnParallelLinear", "TELayerNormColumnParallelLinear",
         "InferenceLayerNormColumnParallelLinear"},
        {"v_b_proj", "ColumnParallelLinear", "TELayerNormColumnParallelLinear",
         "InferenceLayerNormColumnParallelLinear"},
        {"attention", "DotProductAttention", "TEDotProductAttention", "TEDotProductAttention"},
        {"o_proj", "RowParallelLinear", "TERowParallelLinear", "InferenceRowParallelLinear"},
    };
    const auto plan = [](const char* backend) {
        return plan_of({.mesh = R"("tp": 2)", .axes = megatron, .backend = backend, .model = deepseek});
    };
    const Plan local = plan("local");
    const Plan fused = plan("fused");
    const Plan inference = plan("inference");
    for (const Row& row : rows) {
        CAPTURE(std::string(row.op));
        CHECK(modules_of(local, row.op) == row.local);
        CHECK(modules_of(fused, row.op) == row.fused);
        CHECK(modules_of(inference, row.op) == row.inference);
    }
    const Plan absorbed = plan_of(
        {.mesh = R"("tp": 2)", .axes = megatron, .workload = decode, .backend = "inference", .model = deepseek});
    CHECK(modules_of(absorbed, "q_absorb") == "AbsorbedHeadLinear");
    CHECK(modules_of(absorbed, "v_absorb") == "AbsorbedHeadLinear");
    CHECK(modules_of(absorbed, "kv_a_norm") == "TENorm");  // the cache holds what it makes
}

TEST_CASE("heads that do not divide are refused as those of any attention") {
    const auto planned = test::try_plan({.mesh = R"("tp": 16)", .axes = megatron, .model = deepseek});
    CHECK_FALSE(planned.plan.has_value());
    CHECK(planned.first("SP4003").message.find("num_attention_heads 8 is not a multiple of head_axis tp=16") !=
          std::string::npos);
    const auto three = test::try_plan({.mesh = R"("tp": 3)", .axes = megatron, .model = deepseek});
    CHECK_FALSE(three.plan.has_value());
    CHECK(three.first("SP4003").pointer == "/mesh/axes/tp");
}

TEST_CASE("rules may cut the projections into the latents") {
    const char* const rules = R"([["kv_a_proj|q_a_proj", ["tp", "fsdp"]], ["q_b|kv_b", ["tp"]], [".*", []]])";
    const Plan plan = plan_of({.mesh = R"("fsdp": 2, "tp": 2)", .axes = megatron, .rules = rules, .model = deepseek});
    CHECK(spec(plan, "kv_a_proj_with_mqa") == "P('tp','fsdp')");
    CHECK(spec(plan, "q_a_proj") == "P('tp','fsdp')");
}

TEST_CASE("the table of easydel-0.2 for DeepSeek") {
    const Plan plan =
        plan_of({.mesh = R"("fsdp": 2, "tp": 2)", .axes = megatron, .rules = "\"easydel-0.2\"", .model = deepseek});
    CHECK(spec(plan, "kv_b_proj") == "P('tp','fsdp')");
}

}  // namespace shardplan::plan
