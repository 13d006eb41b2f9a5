// Where values lie, what is done in place and what is executed as one step, in plans small enough to follow by hand.
#include "plan/arena.h"

#include <doctest/doctest.h>

#include "plan/planning.h"

namespace shardplan::plan {

using test::block_of;
using test::JobText;
using test::plan_of;

namespace {

constexpr const char* replicated_hidden = R"("hidden_state_axis": null)";
constexpr const char* tokens_over_tp = R"("hidden_state_axis": null, "sequence_axis": "tp")";

/// "reduce-scatter, InferenceRowParallelLinear, ..., all-gather": what each group of joined steps consists of.
std::vector<std::string> joined_groups(const BlockPlan& block) {
    std::vector<std::string> groups;
    for (const Step& step : block.steps) {
        if (step.joined == 0) {
            continue;
        }
        groups.resize(static_cast<std::size_t>(step.joined));
        groups.back() += groups.back().empty() ? "" : ", ";
        groups.back() += step.compute ? step.compute->module : mesh::to_string(step.collective->kind);
    }
    return groups;
}

}  // namespace

TEST_CASE("the residual stream stays where it is from the first layer to the last") {
    for (const char* mesh : {R"("dp": 1)", R"("tp": 4)"}) {
        const Plan plan = plan_of({.mesh = mesh, .axes = replicated_hidden});
        const BlockPlan& layer = block_of(plan, "layer");
        CHECK(memory_owner(layer, layer.output) == layer.input);
        CHECK_FALSE(turns_arena(layer));
        CHECK(turns_arena(block_of(plan, "embedding")));
        CHECK(turns_arena(block_of(plan, "head")));
    }
    // Post-norms make a new tensor of the sum: the arena turns with every layer.
    const Plan gemma = plan_of({.mesh = R"("dp": 1)", .model = R"("model_type": "olmo2", "hidden_size": 64,
        "num_attention_heads": 8, "num_hidden_layers": 2, "num_key_value_heads": 4, "intermediate_size": 96,
        "tie_word_embeddings": false)"});
    CHECK_FALSE(turns_arena(block_of(gemma, "layer")));
}

TEST_CASE("sums over ranks are made in place, and an operand that is needed again is kept") {
    const Plan plan = plan_of({.mesh = R"("tp": 4)", .axes = replicated_hidden});
    int sums = 0;
    for (const BlockPlan& block : plan.blocks) {
        for (const Step& step : block.steps) {
            if (step.collective && step.collective->kind == mesh::CollectiveKind::all_reduce) {
                CHECK(memory_owner(block, step.collective->output) == memory_owner(block, step.collective->input));
                ++sums;
            }
        }
    }
    CHECK(sums == 3);  // embedding, o_proj, down_proj
    const BlockPlan& layer = block_of(plan, "layer");
    for (const Step& step : layer.steps) {
        if (step.compute && step.compute->outputs.front() != layer.output) {
            const ValueId output = memory_owner(layer, step.compute->outputs.front());
            const bool norm = step.compute->module == "WrappedTorchNorm";
            CHECK((!norm || output != layer.input));  // the residual is added later
        }
    }
}

TEST_CASE("the arena of a layer by hand") {
    const Plan plan = plan_of({.mesh = R"("dp": 1)"});
    const BlockPlan& layer = block_of(plan, "layer");
    // [2, 16, 64] and [2, 16, 96] in f32: x, norm, gate, up; up is multiplied into gate, and down takes the norm's
    // place.
    constexpr std::int64_t hidden = 2 * 16 * 64 * 4;
    constexpr std::int64_t intermediate = 2 * 16 * 96 * 4;
    CHECK(layer.peak_activation_bytes == 2 * hidden + 2 * intermediate);
    CHECK(layer.arena_bytes == layer.peak_activation_bytes);
    CHECK(layer.values[static_cast<std::size_t>(layer.input.value())].offset == 0);
    CHECK(plan.memory.arena == layer.arena_bytes);
    CHECK(plan.memory.total() == plan.memory.parameters + plan.memory.cache + plan.memory.arena);
}

TEST_CASE("fused linears need no room beside their outputs but for the normalised input") {
    constexpr std::int64_t hidden = 2 * 16 * 64 * 4;
    constexpr std::int64_t intermediate = 2 * 16 * 96 * 4;
    for (const char* provider : {"fused", "inference"}) {
        const Plan plan = plan_of({.mesh = R"("dp": 1)", .backend = provider});
        const BlockPlan& layer = block_of(plan, "layer");
        CHECK(layer.peak_activation_bytes == hidden + 2 * intermediate);
        CHECK(layer.arena_bytes == 2 * hidden + 2 * intermediate);  // as with steps of their own
        std::vector<ValueId> gate_and_up;
        for (const Step& step : layer.steps) {
            if (step.compute && step.compute->kind == ComputeKind::fused_linear) {
                CHECK(step.compute->scratch_bytes == hidden);
                gate_and_up = step.compute->outputs;  // the last one
            } else if (step.compute && step.compute->inputs == gate_and_up) {
                CHECK(memory_owner(layer, step.compute->outputs.front()) == gate_and_up.front());
                gate_and_up.clear();
            }
        }
        CHECK(gate_and_up.empty());
    }
}

TEST_CASE("the inference provider reduces, adds, normalises and gathers in one step") {
    const Plan inference = plan_of({.mesh = R"("tp": 4)", .axes = tokens_over_tp, .backend = "inference"});
    const std::string row = "InferenceRowParallelLinear";
    CHECK(joined_groups(block_of(inference, "layer")) ==
          std::vector{"reduce-scatter, " + row + ", " + row + ", all-gather"});
    CHECK(joined_groups(block_of(inference, "head")).empty());
    const Plan fused = plan_of({.mesh = R"("tp": 4)", .axes = tokens_over_tp, .backend = "fused"});
    CHECK(joined_groups(block_of(fused, "layer")).empty());
    // The same bytes move, whoever moves them.
    CHECK(test::moves(block_of(inference, "layer")) == test::moves(block_of(fused, "layer")));
    REQUIRE(inference.collectives.size() == fused.collectives.size());
    for (std::size_t i = 0; i < fused.collectives.size(); ++i) {
        CHECK(inference.collectives[i].wire_bytes_total == fused.collectives[i].wire_bytes_total);
    }
    // A weight of the norm that is gathered between does not fit the pattern: the steps stay apart.
    const Plan gathered = plan_of({.mesh = R"("tp": 2, "fsdp": 2)",
                                   .axes = tokens_over_tp,
                                   .backend = "inference",
                                   .rules = R"([["norm.*", ["fsdp"]], [".*", ["fsdp", "tp"]]])"});
    for (const BlockPlan& block : gathered.blocks) {
        for (const Step& step : block.steps) {
            CHECK((step.joined == 0 || !step.compute || step.compute->module == row));
        }
    }
}

}  // namespace shardplan::plan
