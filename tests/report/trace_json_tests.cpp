#include "report/trace_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/tiny_plan.h"

using namespace shardplan;
using nlohmann::json;
using report::TraceSpan;

TEST_CASE("a trace has a process for each rank, a track for each kind of work, and says what every step is") {
    const plan::Plan plan = report_tests::tiny_plan();
    std::vector<std::vector<TraceSpan>> ranks(8);
    const auto use = static_cast<std::int32_t>(plan.sequence.size()) - 2;  // a layer
    const auto& steps = plan.blocks[static_cast<std::size_t>(plan.sequence[static_cast<std::size_t>(use)].block)].steps;
    for (std::size_t step = 0; step < steps.size(); ++step) {
        ranks[5].push_back({TraceSpan::Kind::step, use, static_cast<std::int32_t>(step), 0, 1,
                            static_cast<std::int64_t>(1000 * step), 500});
    }
    ranks[5].push_back({TraceSpan::Kind::send, -1, -1, 0, 1, 9000, 10});
    ranks[5].push_back({TraceSpan::Kind::model_step, -1, -1, 0, 1, 0, 9500});
    std::ostringstream out;
    write_trace_json(out, plan, ranks);
    const json events = json::parse(out.str())["traceEvents"];
    CHECK(events.size() == 8 * 4 + steps.size() + 2);
    std::size_t next = 0;
    for (const json& event : events) {
        if (event["ph"] == "M") {
            CHECK((event["name"] != "process_name" || event["pid"] != 5 ||
                   event["args"]["name"] == "rank 5 (dp=1, tp=1)"));
            continue;
        }
        CHECK(event["pid"] == 5);
        CHECK(event["args"]["run"] == 1);
        if (next >= steps.size()) {
            CHECK(event["tid"] == (next == steps.size() ? 2 : 0));
            ++next;
            continue;
        }
        const plan::Step& step = steps[next];
        CHECK(event["ts"] == static_cast<double>(next));
        CHECK(event["dur"] == 0.5);
        CHECK(event["tid"] == (step.compute ? 1 : 2));
        CHECK(event["args"]["step"] == ++next);
        CHECK(event["args"].contains("layer"));
        if (step.compute) {
            CHECK(event["args"]["module"] == step.compute->module);
            CHECK(event["args"]["bytes"] > 0);
        } else {
            CHECK(event["args"]["wire_bytes"] == step.collective->wire_bytes);
        }
    }
}
