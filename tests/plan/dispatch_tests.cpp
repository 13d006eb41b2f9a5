// How tokens reach experts on other devices: when they are sent, what that moves and needs, and why.
#include <cmath>

#include "plan/planning.h"

namespace shardplan::plan {

using mesh::CollectiveKind;
using test::block_of;
using test::JobText;
using test::moves;
using test::plan_of;

namespace {

const char* const mixtral = R"("model_type": "mixtral", "hidden_size": 64,
    "num_attention_heads": 8, "num_hidden_layers": 2, "num_key_value_heads": 4,
    "intermediate_size": 32, "num_local_experts": 8, "num_experts_per_tok": 2)";

const char* const sent =
    "all-to-all ep experts.sent.counts; all-to-all-v ep experts.sent; all-to-all-v ep experts.sent.routing; "
    "all-to-all-v ep experts.results";
const char* const gathered = "all-gather ep pre_mlp_norm.out; all-to-all ep routing; reduce-scatter ep experts.out";

JobText job(const char* mesh, const char* axes, const char* backend = "") {
    return {.mesh = mesh,
            .axes = axes,
            .workload = R"("batch_size": 8, "sequence_length": 16)",
            .backend = std::string(R"({"provider": "local")") + backend + "}",
            .model = mixtral};
}

const DispatchUse& use_of(const Plan& plan) {
    const BlockPlan& block = block_of(plan, "layer.moe");
    REQUIRE(block.dispatches.size() == 1);
    return block.dispatches.front();
}

std::vector<CollectiveStep> exchanges(const BlockPlan& block) {
    std::vector<CollectiveStep> result;
    for (const Step& step : block.steps) {
        if (step.collective && step.collective->kind == CollectiveKind::all_to_all_v) {
            result.push_back(*step.collective);
        }
    }
    return result;
}

}  // namespace

TEST_CASE("tokens are sent where that moves fewer bytes than gathering them") {
    struct Case {
        const char* mesh;
        const char* axes;
        const char* backend;
        bool all_to_all;
        bool alternative;
        const char* reason;
    };
    const Case cases[] = {
        {R"("ep": 2)", R"("batch_axis": "ep")", "", false, true,
         "each token has as many experts as there are devices: it would go to nearly all of them"},
        {R"("ep": 4)", R"("batch_axis": "ep")", "", true, true,
         "each token goes to 2 of 4 devices, which moves fewer bytes than all of them would"},
        {R"("ep": 4)", R"("batch_axis": "ep")", R"(, "moe_token_dispatcher_type": "allgather")", false, false,
         "as the job says"},
        {R"("ep": 2)", R"("batch_axis": "ep")", R"(, "moe_token_dispatcher_type": "alltoall")", true, true,
         "as the job says"},
        {R"("ep": 4)", "", "", false, false, "no device has tokens of its own: all-to-all would have nothing to send"},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.mesh) + c.axes + c.backend);
        const Plan plan = plan_of(job(c.mesh, c.axes, c.backend));
        const DispatchUse& use = use_of(plan);
        CHECK(use.all_to_all == c.all_to_all);
        CHECK((use.alternative_bytes >= 0) == c.alternative);
        CHECK(use.reason == c.reason);
        CHECK((!c.all_to_all || moves(block_of(plan, "layer.moe")) == sent));
    }
    CHECK(moves(block_of(plan_of(job(cases[0].mesh, cases[0].axes)), "layer.moe")) == gathered);
    const DispatchUse chosen = use_of(plan_of(job(R"("ep": 4)", R"("batch_axis": "ep")")));
    CHECK(chosen.chosen_bytes < chosen.alternative_bytes);
}

TEST_CASE("balanced and worst bytes, and room for the worst") {
    const Plan plan = plan_of(job(R"("dp": 2, "ep": 4)", R"("batch_axis": ["dp", "ep"])"));
    const BlockPlan& block = block_of(plan, "layer.moe");
    const std::vector<CollectiveStep> steps = exchanges(block);
    REQUIRE(steps.size() == 3);
    // A device has 16 tokens; each goes to 2 of 4 devices: 24 of 32 rows leave it, at worst all 32.
    const std::int64_t widths[] = {64 * 4, 2 * 4, 64 * 4};
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(steps[i].group_size == 4);
        CHECK(steps[i].wire_bytes == 24 * widths[i]);
        CHECK(steps[i].wire_bytes_total == 8 * 24 * widths[i]);
        CHECK(steps[i].worst_wire_bytes_total == 8 * 32 * widths[i]);
    }
    const auto shape = [&](ValueId id) { return block.values[static_cast<std::size_t>(id)].local_shape; };
    CHECK(shape(steps[0].input) == tensor::Shape{32, 64});
    CHECK(shape(steps[0].output) == tensor::Shape{64, 64});
    CHECK(shape(steps[1].output) == tensor::Shape{64, 2});
    CHECK(shape(steps[2].output) == tensor::Shape{32, 64});
    std::int64_t bytes = 0;
    std::int64_t worst = 0;
    for (const CollectiveTotal& total : plan.collectives) {
        bytes += total.kind == CollectiveKind::all_to_all_v ? total.wire_bytes_total : 0;
        worst += total.worst_wire_bytes_total;
    }
    CHECK(bytes == 2 * 8 * 24 * (64 * 4 + 8 + 64 * 4));
    CHECK(3 * worst == 4 * bytes);
}

TEST_CASE("experts over some of the tokens' axes, and tokens over some of the experts'") {
    const Plan folded =
        plan_of(job(R"("dp": 2, "fsdp": 2)", R"("batch_axis": ["dp", "fsdp"], "expert_axis": ["fsdp", "dp"])",
                    R"(, "moe_token_dispatcher_type": "alltoall")"));
    CHECK(exchanges(block_of(folded, "layer.moe")).front().names == std::vector<std::string>{"fsdp", "dp"});
    const Plan partly = plan_of(job(R"("dp": 2, "ep": 2)", R"("batch_axis": "dp", "expert_axis": ["dp", "ep"])",
                                    R"(, "moe_token_dispatcher_type": "alltoall")"));
    CHECK(exchanges(block_of(partly, "layer.moe")).front().names == std::vector<std::string>{"dp"});
    CHECK(moves(block_of(partly, "layer.moe")).ends_with("all-reduce ep experts.out"));
}

TEST_CASE("all-to-all where nothing can be sent is said") {
    const auto planned = test::try_plan(job(R"("ep": 4)", "", R"(, "moe_token_dispatcher_type": "alltoall")"));
    REQUIRE(planned.plan.has_value());
    const diag::Diagnostic& found = planned.first("SP5004");
    CHECK(found.pointer == "/backend/moe_token_dispatcher_type");
    CHECK(found.hint == "cut the tokens over ep too (batch_axis or sequence_axis)");
}

TEST_CASE("modules of experts and of the dispatcher") {
    struct Case {
        const char* backend;
        const char* compat;
        const char* module;
        bool grouped;
    };
    const Case cases[] = {
        {R"("provider": "local")", "seed", "SequentialMLP", false},
        {R"("provider": "local", "moe_use_grouped_gemm": true)", "seed", "GroupedMLP", true},
        {R"("provider": "local", "moe_use_grouped_gemm": true)", "current", "SequentialMLP", false},
        {R"("provider": "fused")", "seed", "TEGroupedMLP", true},
        {R"("provider": "fused", "moe_use_grouped_gemm": false)", "seed", "SequentialMLP", false},
        {R"("provider": "fused", "moe_use_legacy_grouped_gemm": true)", "seed", "GroupedMLP", true},
        {R"("provider": "fused", "moe_use_legacy_grouped_gemm": true)", "current", "TEGroupedMLP", true},
        {R"("provider": "inference", "moe_use_grouped_gemm": false)", "current", "InferenceGroupedMLP", true},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.backend));
        CAPTURE(std::string(c.compat));
        for (const char* dispatcher : {"allgather", "alltoall"}) {
            JobText text = job(R"("ep": 2)", R"("batch_axis": "ep")");
            text.options = fmt::format(R"("compat": "{}")", c.compat);
            text.backend = fmt::format(R"({{{}, "moe_token_dispatcher_type": "{}"}})", c.backend, dispatcher);
            const auto planned = test::try_plan(text);
            REQUIRE(planned.plan.has_value());
            std::vector<std::string> modules;
            for (const Step& step : block_of(*planned.plan, "layer.moe").steps) {
                const bool experts =
                    step.compute && step.compute->kind != ComputeKind::fused_linear && step.compute->op >= 0 &&
                    planned.plan->graph.blocks[1].ops[static_cast<std::size_t>(step.compute->op)].kind ==
                        model::OpKind::experts;
                if (experts) {
                    modules.push_back(step.compute->module);
                    CHECK(step.compute->grouped == (c.grouped && step.compute->module == c.module));
                }
            }
            const std::string way = "MoEAlltoAllTokenDispatcher";
            CHECK(modules == (std::string(dispatcher) == "alltoall" ? std::vector<std::string>{way, c.module, way}
                                                                    : std::vector<std::string>{c.module}));
            const bool legacy = std::string(c.module) == "GroupedMLP";
            CHECK(test::contains(planned.text(), "GroupedMLP is deprecated upstream") == legacy);
        }
    }
}

}  // namespace shardplan::plan
