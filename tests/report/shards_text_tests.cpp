#include "report/shards_text.h"

#include <doctest/doctest.h>

#include <sstream>
#include <stdexcept>

#include "report/golden.h"
#include "report/tiny_plan.h"

using namespace shardplan;
using report::ShardsResult;
using report_tests::first_difference;
using report_tests::golden;
using report_tests::plan_of_tensor;
using report_tests::tiny_plan;

namespace {

std::string drawn(const plan::Plan& plan, const std::string& query, ShardsResult expected = ShardsResult::drawn,
                  const report::Style& style = {}) {
    std::ostringstream out;
    CHECK(report::write_shards_text(out, plan, query, style) == expected);
    return out.str();
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a matrix cut both ways") {
    const std::string text = drawn(plan_of_tensor({{"dp", 2}, {"tp", 2}}, {8, 16}, {{{"tp"}, {"dp"}}}), "w");
    CHECK(text ==
          "w  [8,16] bf16 P('tp','dp')\n"
          "4 parts of [4,8], 64 B each, on 1 device each\n"
          "downwards: dimension 0 over 'tp'\n"
          "to the right: dimension 1 over 'dp'\n"
          "  ┌─────────────┬─────────────┐\n"
          "  │ [0:4, 0:8]  │ [0:4, 8:16] │\n"
          "  │      0      │      2      │\n"
          "  ├─────────────┼─────────────┤\n"
          "  │ [4:8, 0:8]  │ [4:8, 8:16] │\n"
          "  │      1      │      3      │\n"
          "  └─────────────┴─────────────┘\n");
}

TEST_CASE("columns, replicas and ascii") {
    const std::string text = drawn(plan_of_tensor({{"dp", 2}, {"tp", 2}}, {8, 16}, {{{}, {"tp"}}}), "w",
                                   ShardsResult::drawn, {false, true, 80});
    CHECK(contains(text, "2 parts of [8,8], 128 B each, on 2 devices each\n"));
    CHECK(contains(text,
                   "  +-------------+-------------+\n"
                   "  | [0:8, 0:8]  | [0:8, 8:16] |\n"
                   "  |     0,2     |     1,3     |\n"
                   "  +-------------+-------------+\n"));
}

TEST_CASE("a replicated tensor is one box, also without dimensions") {
    CHECK(contains(drawn(plan_of_tensor({{"dp", 8}}, {4}, {{{}}}), "w"), "│  [0:4]  │\n  │   0-7   │\n"));
    CHECK(contains(drawn(plan_of_tensor({{"dp", 2}}, {}, {}), "w"), "│   []    │\n  │   0-1   │\n"));
}

TEST_CASE("two axes on one dimension: left is major") {
    const std::string text = drawn(plan_of_tensor({{"dp", 2}, {"tp", 2}}, {8}, {{{"tp", "dp"}}}), "w");
    CHECK(contains(text, "to the right: dimension 0 over ('tp','dp')\n"));
    CHECK(contains(text, "│  [0:2]  │  [2:4]  │  [4:6]  │  [6:8]  │\n  │    0    │    2    │    1    │    3    │\n"));
}

TEST_CASE("three cut dimensions: the two with most parts, the first part of the other") {
    const std::string text =
        drawn(plan_of_tensor({{"a", 2}, {"b", 4}, {"c", 4}}, {8, 8, 8}, {{{"a"}, {"b"}, {"c"}}}), "w");
    CHECK(contains(text, "dimension 0 is cut into 2 over 'a' as well: its first part is drawn\n"));
    CHECK(contains(text, "downwards: dimension 1 over 'b'\n"));
    CHECK(contains(text, "16 of 32 boxes are not drawn\n"));
}

TEST_CASE("big meshes are summarised") {
    const plan::Plan plan =
        plan_of_tensor({{"dp", 8}, {"fsdp", 16}, {"tp", 128}}, {16384, 16384}, {{{"tp"}, {"fsdp"}}});
    const std::string text = drawn(plan, "w");
    CHECK(contains(text, "2,048 parts of [128,1024], 262.14 kB each, on 8 devices each\n"));
    CHECK(contains(text, "0-14336:2048"));
    CHECK(contains(text, "a-b:s are the devices a, a+s, a+2s, .., b\n"));
    CHECK(contains(text, "2,016 of 2,048 boxes are not drawn\n"));
    CHECK(text.size() < 8000);
}

TEST_CASE("many devices of one box are counted") {
    // Every second block of 2 along three axes of replicas gives a list that no range folds.
    const plan::Plan plan = plan_of_tensor({{"a", 8}, {"x", 3}, {"b", 8}, {"y", 3}, {"c", 3}}, {9}, {{{"x", "y"}}});
    CHECK(contains(drawn(plan, "w"), "... 192 devices"));
}

TEST_CASE("a pending value says what its parts are") {
    plan::Plan plan = plan_of_tensor({{"tp", 2}}, {4}, {{{}}});
    plan.stored[0].layout.pending.insert(mesh::AxisId{0});
    const std::string text = drawn(plan, "w");
    CHECK(contains(text, "P(None,) partial over tp\n"));
    CHECK(contains(text, "every device holds a summand: the value is the sum over tp\n"));
}

TEST_CASE("tensors are found by the names people type") {
    const plan::Plan plan = tiny_plan();
    const std::string full = "model.layers.{0..3}.mlp.up_proj.weight";
    for (const char* query : {"model.layers.{0..3}.mlp.up_proj.weight", "model.layers.{}.mlp.up_proj.weight",
                              "model.layers.2.mlp.up_proj.weight", "mlp.up_proj.weight", "2.mlp.up_proj.weight",
                              "up_proj.weight", "up_proj", "mlp.up_proj"}) {
        CAPTURE(query);
        CHECK(drawn(plan, query).starts_with(full));
    }
    CHECK(drawn(plan, "qkv_proj.weight [q]").starts_with("model.layers.{0..3}.self_attn.qkv_proj.weight [q]"));
    CHECK(drawn(plan, "qkv_proj.weight[q]").starts_with("model.layers.{0..3}.self_attn.qkv_proj.weight [q]"));
    CHECK(drawn(plan, "layer.up").starts_with("layer.up  [4,8,64]"));
    CHECK(drawn(plan, "token_ids").starts_with("embedding.token_ids  [4,8]"));
}

TEST_CASE("several or no matches") {
    const plan::Plan plan = tiny_plan();
    CHECK(drawn(plan, "weight", ShardsResult::several).starts_with("4 tensors match 'weight':\n"));
    CHECK(contains(drawn(plan, "mlp", ShardsResult::several), "  model.layers.{0..3}.mlp.down_proj.weight  [32,64]"));
    CHECK(drawn(plan, "down_porj", ShardsResult::not_found) ==
          "no tensor is called 'down_porj'\nhint: did you mean 'down_proj'?\n");
    CHECK(drawn(plan, "model.layers.4.mlp.up_proj.weight", ShardsResult::not_found).starts_with("no tensor is called"));
    CHECK(drawn(plan, "p_proj.weight", ShardsResult::not_found).starts_with("no tensor"));
    CHECK(drawn(plan, "\x1b[2J", ShardsResult::not_found) == "no tensor is called '\\x1b[2J'\n");
}

TEST_CASE("the ranges of a rank") {
    std::ostringstream out;
    report::write_rank_text(out, tiny_plan(), 5, {});
    CHECK(first_difference(golden("rank_5.txt", out.str()), out.str()) == "");
    CHECK_THROWS_AS(report::write_rank_text(out, tiny_plan(), 8, {}), std::out_of_range);
    CHECK_THROWS_AS(report::write_rank_text(out, tiny_plan(), -1, {}), std::out_of_range);
}
