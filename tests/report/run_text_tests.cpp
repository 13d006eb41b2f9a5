#include "report/run_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/golden.h"

using namespace shardplan::report;
using report_tests::first_difference;
using report_tests::golden;

namespace {

RunSummary good_run() {
    RunSummary run;
    run.job = "tiny";
    run.mesh = "dp=2, tp=4 (8 devices)";
    run.provider = "local";
    run.kernels = "onednn";
    run.plan_hash = "0123456789abcdef";
    run.ranks = 8;
    run.oversubscribed = true;
    for (int rank = 0; rank < 8; ++rank) {
        run.binding.push_back({rank < 7 ? "node1" : "node2", rank < 4 ? "0" : "1-3", 1});
    }
    run.verify = VerifyResult{true, 1.5e-6, 2e-5, 3e-7, "rms_rel <= 1.0e-05", {0, 3, 17}, 0.5, 0.5000015, 2048, 0};
    run.collectives = {{"all-gather", {4, 4}, {24576, 24576}}, {"reduce-scatter", {4, 4}, {24576, 24576}}};
    run.memory = {{"parameters", {10240, 10240}}, {"activations", {2560, 2560}}};
    run.kernel_scratch_bytes = 4096;
    run.planned_bytes = 400 << 20;
    run.resident_bytes = 420 << 20;
    run.outside_seconds = 0.0001;
    run.times = {{"matmul", 9, 0.003}, {"all-gather", 4, 0.001}};
    run.step_seconds = 0.004;
    run.mean_step_seconds = 0.0045;
    run.step_flops = 2e9;
    run.step_bytes = 40'000'000;
    run.tokens_per_second = 8000.0;
    run.notes = {"8 ranks on 2 cores: times are not comparable"};
    return run;
}

std::string text_of(const RunSummary& run) {
    std::ostringstream out;
    write_run_text(out, run, {});
    return out.str();
}

nlohmann::json json_of(const RunSummary& run) {
    std::ostringstream out;
    write_run_json(out, run);
    return nlohmann::json::parse(out.str());
}

}  // namespace

TEST_CASE("the text of a run is the recorded one") {
    const std::string text = text_of(good_run());
    CHECK(first_difference(golden("run.txt", text), text) == "");
    CHECK(text.find("DIFFER") == std::string::npos);
}

TEST_CASE("what differs is said") {
    RunSummary run = good_run();
    CHECK(run.passed());
    run.collectives[1].bytes.counted = 24577;
    CHECK_FALSE(run.predictions_hold());
    CHECK_FALSE(run.passed());
    CHECK(text_of(run).find("24,576   24,577  DIFFER") != std::string::npos);
    run = good_run();
    run.memory[0].bytes.counted = 1;
    CHECK_FALSE(run.passed());
    CHECK(text_of(run).find("DIFFER") != std::string::npos);
    run = good_run();
    run.verify->passed = false;
    CHECK(run.predictions_hold());
    CHECK_FALSE(run.passed());
    CHECK(text_of(run).find("FAILED: rms_rel <= 1.0e-05") != std::string::npos);
    run.verify.reset();
    CHECK(run.passed());
    CHECK(text_of(run).find("not checked") != std::string::npos);
}

TEST_CASE("exchanges that the routing decides are held to the routing and the worst case") {
    RunSummary run = good_run();
    run.collectives.push_back({"all-to-all-v", {2, 2}, {100, 90}, 150, 90});
    CHECK(run.passed());
    CHECK(text_of(run).find("as routed, at most 150") != std::string::npos);
    nlohmann::json row = json_of(run)["collectives"].back();
    CHECK(row["worst_wire_bytes_total"] == 150);
    CHECK(row["routed_wire_bytes_total"] == 90);
    CHECK(row["holds"] == true);
    run.collectives.back().routed = 91;
    CHECK_FALSE(run.passed());
    CHECK(text_of(run).find("ROUTED 91, at most 150") != std::string::npos);
    run.collectives.back().routed.reset();
    CHECK(run.passed());
    run.collectives.back().bytes.counted = 151;
    CHECK_FALSE(run.passed());
    CHECK(text_of(run).find("MORE THAN 150") != std::string::npos);
}

TEST_CASE("choices that were taken over are said") {
    RunSummary run = good_run();
    CHECK(text_of(run).find("near ties") == std::string::npos);
    CHECK(json_of(run)["verify"]["routing_ties"] == 0);
    run.verify->routing_ties = 3;
    CHECK(text_of(run).find("3 choices of experts at near ties taken over by the unsharded model") !=
          std::string::npos);
    CHECK(json_of(run)["verify"]["routing_ties"] == 3);
}

TEST_CASE("int8 weights: what rounding did is a second comparison, and tokens it changed are counted") {
    RunSummary run = good_run();
    CHECK_FALSE(json_of(run).contains("rounding"));
    run.generated = Generated{{{1, 2, 3}}, 0, 1};
    run.rounding = VerifyResult{true, 0.1, 0.2, 0.03, "relative rms <= 0.05", {0, 1, 2}, 0.5, 0.6, 2048, 2};
    const std::string text = text_of(run);
    CHECK(text.find("Result against the unsharded model of the same int8 weights") != std::string::npos);
    CHECK(text.find("of the weights before rounding to int8") != std::string::npos);
    CHECK(text.find("as expected of rounding: relative rms <= 0.05") != std::string::npos);
    CHECK(text.find("2 of 3 as that of the weights before rounding would") != std::string::npos);
    CHECK(json_of(run)["rounding"]["tolerance"] == "relative rms <= 0.05");
    CHECK(json_of(run)["rounding"]["routing_ties"] == 2);
    CHECK(json_of(run)["generated"]["changed_by_rounding"] == 1);
    CHECK(run.passed());
    run.rounding->passed = false;  // of the weights, not of the sharding
    CHECK(run.passed());
    CHECK(text_of(run).find("more than expected of rounding") != std::string::npos);
}

TEST_CASE("a comparison with f32 activations says how far bf16 alone goes") {
    RunSummary run = good_run();
    CHECK_FALSE(json_of(run)["verify"].contains("own_rms"));
    run.verify->own_rms = 0.0125;
    CHECK(json_of(run)["verify"]["own_rms"] == 0.0125);
    CHECK(text_of(run).find("bf16 alone moves the unsharded model by rms_rel 1.25e-02") != std::string::npos);
}

TEST_CASE("a run as JSON") {
    RunSummary run = good_run();
    run.collectives[0].calls.counted = 5;
    run.verify->max_rel = std::numeric_limits<double>::infinity();
    const nlohmann::json doc = json_of(run);
    CHECK(doc["schema_version"] == "1.0");
    CHECK(doc["passed"] == false);
    CHECK(doc["predictions_hold"] == false);
    CHECK(doc["collectives"][0]["calls"] == nlohmann::json::parse(R"({"predicted":4,"counted":5,"equal":false})"));
    CHECK(doc["memory"][0]["bytes"] == nlohmann::json::parse(R"({"predicted":10240,"allocated":10240,"equal":true})"));
    CHECK(doc["verify"]["worst_index"] == nlohmann::json::parse("[0,3,17]"));
    CHECK(doc["verify"]["max_rel"].is_null());
    CHECK(doc["time"]["steps"][1]["kind"] == "all-gather");
    CHECK(doc["time"]["mean_step_seconds"] == 0.0045);
    CHECK(doc["time"]["flops_per_second"].get<double>() == doctest::Approx(5e11));
    CHECK(doc["time"]["bytes_per_second"].get<double>() == doctest::Approx(1e10));
    CHECK(doc["time"]["outside_seconds"] == 0.0001);
    CHECK(doc["oversubscribed"] == true);
    CHECK(doc["binding"][7] == nlohmann::json::parse(R"({"host":"node2","cores":"1-3","threads":1})"));
    CHECK(doc["peak_resident_bytes"] == 420 << 20);
    CHECK(doc["planned_bytes"] == 400 << 20);
    run.verify.reset();
    CHECK(json_of(run)["verify"].is_null());
}
