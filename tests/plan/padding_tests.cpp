// Padded vocabularies: how far, for what, and that nothing else pads.
#include <doctest/doctest.h>

#include "plan/planning.h"

using namespace shardplan;
using test::Planned;

namespace {

struct Padding {
    const char* mesh;
    const char* options;
    const char* axes;
    std::int64_t rows;  ///< 0: none
};

const std::vector<Padding> paddings = {
    {R"("tp": 2)", R"("indivisible": "pad")", "", 256},
    {R"("tp": 1)", R"("indivisible": "pad")", "", 0},
    {R"("dp": 2)", R"("indivisible": "pad")", "", 0},
    {R"("tp": 2, "dp": 2)", R"("indivisible": "pad")", R"("vocab_axis": ["tp", "dp"], "batch_axis": null)", 512},
    {R"("tp": 2)", R"("padded_vocab_size": 102)", "", 102},
    {R"("tp": 2)", R"("indivisible": "pad", "padded_vocab_size": 300)", "", 300},
    {R"("tp": 1)", R"("padded_vocab_size": 104)", "", 104},
};

Planned plan_with(const test::JobText& text, std::int64_t vocab) {
    plan::Job job = test::job_of(text);
    job.model.vocab = vocab;
    Planned result;
    result.plan = plan::make_plan(job, result.diagnostics);
    return result;
}

bool has(const Planned& planned, const std::string& code) {
    return test::contains(planned.text(), code);
}

}  // namespace

TEST_CASE("the vocabulary is padded to Megatron's size or the one given, and only then") {
    for (const Padding& row : paddings) {
        CAPTURE(row.mesh);
        CAPTURE(row.options);
        test::JobText job;
        job.mesh = row.mesh;
        job.axes = row.axes;
        job.options = row.options;
        const Planned planned = plan_with(job, 101);
        REQUIRE(planned.plan.has_value());
        const std::int64_t rows = row.rows == 0 ? 101 : row.rows;
        CHECK(planned.plan->graph.model.vocab_rows() == rows);
        CHECK(has(planned, "SP4014") == (row.rows > 0));
        for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
            CHECK(test::stored(*planned.plan, name).shape == tensor::Shape{rows, 64});
        }
        CHECK(
            planned.plan->blocks.back().values.at(static_cast<std::size_t>(planned.plan->blocks.back().output)).shape ==
            tensor::Shape{2, 16, rows});
        // What a checkpoint holds stays what it is.
        job.options = "";
        job.mesh = R"("tp": 1)";
        job.axes = "";
        CHECK(planned.plan->totals.parameters == plan_with(job, 101).plan->totals.parameters);
    }
}

TEST_CASE("a vocabulary that divides is left alone, another dimension is no vocabulary") {
    test::JobText job;
    job.mesh = R"("tp": 4)";
    job.options = R"("indivisible": "pad")";
    CHECK(plan_with(job, 100).plan->graph.model.vocab_rows() == 100);
    job.mesh = R"("tp": 3)";
    const Planned planned = plan_with(job, 99);
    CHECK_FALSE(planned.plan.has_value());
    CHECK(has(planned, "SP4003"));
}

TEST_CASE("with rules that cut the vocabulary it is padded for their axes") {
    test::JobText job;
    job.mesh = R"("a": 2, "b": 3)";
    job.options = R"("indivisible": "pad")";
    job.rules = R"([["embed_tokens|lm_head", [["a", "b"]]], [".*", []]])";
    const Planned planned = plan_with(job, 101);
    REQUIRE(planned.plan.has_value());
    CHECK(planned.plan->graph.model.vocab_rows() == 768);
    CHECK(test::stored(*planned.plan, "lm_head.weight").local_shape == tensor::Shape{128, 64});
}
