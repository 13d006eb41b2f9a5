#include "report/plan_text.h"

#include <doctest/doctest.h>

#include <regex>
#include <sstream>

#include "report/golden.h"
#include "report/steps_text.h"
#include "report/text_width.h"
#include "report/tiny_plan.h"

using namespace shardplan;
using report_tests::first_difference;
using report_tests::golden;
using report_tests::tiny_plan;

namespace {

std::string text_of_plan(const plan::Plan& plan, const report::Style& style,
                         const report::PlanTextOptions& options = {}) {
    diag::Diagnostics diagnostics;
    diagnostics.report("SP4006", "25 % of the parameters are sharded by no rule", "/partition_axis/vocab_axis",
                       "set vocab_axis");
    std::ostringstream out;
    report::write_plan_text(out, plan, diagnostics.all(), {}, style, options);
    return out.str();
}

int widest_line(const std::string& text) {
    std::istringstream in(text);
    int width = 0;
    for (std::string line; std::getline(in, line);) {
        width = std::max(width, report::display_width(line));
    }
    return width;
}

bool has_line(const std::string& text, const std::string& pattern) {
    std::istringstream in(text);
    const std::regex wanted(pattern);
    for (std::string line; std::getline(in, line);) {
        if (std::regex_search(line, wanted)) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("the text of a plan is the recorded one") {
    const std::string unicode = text_of_plan(tiny_plan(), {});
    CHECK(first_difference(golden("plan.txt", unicode), unicode) == "");
    const std::string ascii = text_of_plan(tiny_plan(), {false, true, 80});
    CHECK(first_difference(golden("plan_ascii_80.txt", ascii), ascii) == "");
}

TEST_CASE("a plan's text folds to the width, and ascii is ascii") {
    for (const int width : {100, 120, 160}) {
        CAPTURE(width);
        CHECK(widest_line(text_of_plan(tiny_plan(), {false, false, width})) <= width);
    }
    for (const char c : text_of_plan(tiny_plan(), {false, true, 120})) {
        CHECK(static_cast<unsigned char>(c) < 0x80);
    }
}

TEST_CASE("colour adds nothing but colour") {
    const std::string coloured = text_of_plan(tiny_plan(), {true, false, 120});
    CHECK(coloured.find("\x1b[") != std::string::npos);
    CHECK(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), "") == text_of_plan(tiny_plan(), {}));
}

TEST_CASE("names of a job cannot write to the terminal") {
    plan::Plan plan = tiny_plan();
    const std::string evil = "a\x1b[2J\xff";
    plan.job.name = evil;
    plan.stored[0].name = evil;
    plan.provider.reasons[0] = evil;
    plan.notes[0] = evil;
    plan.blocks[1].values[0].name = evil;
    plan.blocks[1].name = evil;
    plan.mesh = plan::RefinedMesh(mesh::Mesh({{evil, 2}, {"tp", 4}}), {{"tp", {2}}});
    const std::string text = text_of_plan(plan, {});
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\xff') == std::string::npos);
    CHECK(text.find("a\\x1b[2J\xef\xbf\xbd") != std::string::npos);
}

TEST_CASE("sections can be left out") {
    const std::string text = text_of_plan(tiny_plan(), {}, {false, false});
    CHECK(text.find("Why they are cut so") == std::string::npos);
    CHECK(text.find("Steps of") == std::string::npos);
    CHECK(text.find("Memory per device") != std::string::npos);
}

TEST_CASE("fused steps and parts of an op are named") {
    plan::Plan plan = tiny_plan();
    plan::ComputeStep& up = *plan.blocks[1].steps[1].compute;
    up.kind = plan::ComputeKind::fused_linear;
    up.fused_ops = {0, 1};
    plan.blocks[1].steps[2].compute->kind = plan::ComputeKind::softmax_merge;
    CHECK(report::op_name(plan, plan.blocks[1], up) == "up_proj+down_proj");
    const std::string text = text_of_plan(plan, {});
    CHECK(has_line(text, R"(^  2  up_proj\+down_proj +ColumnParallelLinear)"));
    CHECK(has_line(text, R"(^  3  down_proj \()"));
}

TEST_CASE("a plan without communication says so") {
    plan::Plan plan = tiny_plan();
    plan.collectives.clear();
    plan.notes.clear();
    plan.memory = {};
    const std::string text = text_of_plan(plan, {});
    CHECK(text.find("Collectives of one step of the model\n  none\n") != std::string::npos);
    CHECK(text.find("Notes") == std::string::npos);
}
