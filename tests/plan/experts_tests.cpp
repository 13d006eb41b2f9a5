// Where the weights of experts lie, and what the layer moves: expert parallelism follows from the factors of the ops.
#include "plan/planning.h"

namespace shardplan::plan {

using test::block_of;
using test::JobText;
using test::moves;
using test::plan_of;
using test::spec;

namespace {

const char* const mixtral = R"("model_type": "mixtral", "hidden_size": 64,
    "num_attention_heads": 8, "num_hidden_layers": 2, "num_key_value_heads": 4,
    "intermediate_size": 32, "num_local_experts": 8, "num_experts_per_tok": 2)";

struct Case {
    const char* name;
    const char* mesh;
    const char* axes;
    const char* gate;  ///< [X, f, e]
    const char* down;  ///< [X, e, f]
    const char* layer;
};

const Case cases[] = {
    {"experts whole on one axis, tokens replicated: one sum", R"("ep": 4)", "", "P('ep',None,None)",
     "P('ep',None,None)", "all-reduce ep experts.out"},
    {"tokens over the experts' axis: gathered and scattered", R"("ep": 2)", R"("batch_axis": "ep")",
     "P('ep',None,None)", "P('ep',None,None)",
     "all-gather ep pre_mlp_norm.out; all-to-all ep routing; reduce-scatter ep experts.out"},
    {"experts cut over tp as well: one sum over both", R"("ep": 2, "tp": 2)", R"("hidden_state_axis": null)",
     "P('ep','tp',None)", "P('ep',None,'tp')", "all-reduce tp o_proj.out; all-reduce ep,tp experts.out"},
    {"experts over tp are not cut inside", R"("tp": 2)", R"("hidden_state_axis": null, "expert_axis": "tp")",
     "P('tp',None,None)", "P('tp',None,None)", "all-reduce tp o_proj.out; all-reduce tp experts.out"},
};

}  // namespace

TEST_CASE("placement and traffic of experts") {
    for (const Case& c : cases) {
        CAPTURE(std::string(c.name));
        const Plan plan = plan_of(JobText{.mesh = c.mesh, .axes = c.axes, .model = mixtral});
        CHECK(spec(plan, "experts.{expert}.w1") == c.gate);
        CHECK(spec(plan, "experts.{expert}.w3") == c.gate);
        CHECK(spec(plan, "experts.{expert}.w2") == c.down);
        CHECK(spec(plan, "block_sparse_moe.gate") == "P(None,None)");
        CHECK(moves(block_of(plan, "layer.moe")) == c.layer);
    }
}

TEST_CASE("experts are not gathered, however many tokens there are") {
    for (const char* length : {"16", "4096"}) {
        const JobText job{.mesh = R"("ep": 2)",
                          .axes = R"("batch_axis": "ep")",
                          .workload = fmt::format(R"("batch_size": 2, "sequence_length": {})", length),
                          .model = mixtral};
        CHECK(moves(block_of(plan_of(job), "layer.moe")) ==
              "all-gather ep pre_mlp_norm.out; all-to-all ep routing; reduce-scatter ep experts.out");
    }
}

TEST_CASE("sinks lie with their heads, biases with their experts, transposed weights as their dimensions say") {
    const char* const gpt_oss = R"("model_type": "gpt_oss", "hidden_size": 64, "num_attention_heads": 8,
        "num_hidden_layers": 1, "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 32,
        "num_local_experts": 8, "num_experts_per_tok": 2, "rope_scaling": null)";
    const Plan plan = plan_of(JobText{.mesh = R"("ep": 2, "tp": 2, "fsdp": 2)",
                                      .axes = R"("hidden_state_axis": null, "batch_axis": "fsdp")",
                                      .model = gpt_oss});
    CHECK(spec(plan, "self_attn.sinks") == "P('tp',)");
    CHECK(spec(plan, "experts.gate_up_proj") == "P('ep','fsdp','tp')");
    CHECK(spec(plan, "experts.gate_up_proj_bias") == "P('ep','tp')");
    CHECK(spec(plan, "experts.down_proj") == "P('ep','tp','fsdp')");
    CHECK(spec(plan, "experts.down_proj_bias") == "P('ep',None)");
    CHECK(spec(plan, "mlp.router.bias") == "P(None,)");
    CHECK(test::contains(moves(block_of(plan, "layer.sliding.moe")), "all-reduce ep,tp experts.out"));
}

TEST_CASE("a shared expert is cut by its own size") {
    const char* const qwen = R"("model_type": "qwen2_moe", "hidden_size": 64, "num_attention_heads": 8,
        "num_hidden_layers": 1, "num_key_value_heads": 4, "intermediate_size": 96, "moe_intermediate_size": 32,
        "num_experts": 8, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 44)";
    const auto planned = test::try_plan(JobText{.mesh = R"("tp": 8)", .model = qwen});
    CHECK(planned.first("SP4003").message.find("intermediate_size 44 is not a multiple") != std::string::npos);
}

TEST_CASE("rules are for the stack of experts") {
    const char* const rules = R"([["experts.0.w[13]", ["x", null, "y"]], ["w2", [null, ["x", "y"]]], [".*", []]])";
    const Plan plan = plan_of(
        JobText{.mesh = R"("x": 2, "y": 2)", .axes = R"("batch_axis": null)", .rules = rules, .model = mixtral});
    CHECK(spec(plan, "experts.{expert}.w1") == "P('x',None,'y')");
    CHECK(spec(plan, "experts.{expert}.w2") == "P(None,('x','y'),None)");
}

TEST_CASE("experts that do not divide are refused by their number") {
    const auto planned = test::try_plan(JobText{.mesh = R"("ep": 3)", .model = mixtral});
    CHECK_FALSE(planned.plan.has_value());
    CHECK(planned.first("SP4003").message.find("num_experts 8 is not a multiple of expert_axis ep=3") !=
          std::string::npos);
}

}  // namespace shardplan::plan
