#include "report/plan_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.h"
#include "report/tiny_plan.h"

using namespace shardplan;
using nlohmann::json;
using report_tests::tiny_plan;

namespace {

std::string json_text(const plan::Plan& plan, const std::vector<diag::Diagnostic>& diagnostics = {}) {
    std::ostringstream out;
    report::write_plan_json(out, plan, diagnostics);
    return out.str();
}

}  // namespace

TEST_CASE("the JSON of a plan has every promised field") {
    diag::Diagnostics diagnostics;
    diagnostics.report("SP4006", "fraction", "/partition_axis", "hint");
    const json doc = json::parse(json_text(tiny_plan(), diagnostics.all()));
    CHECK(doc["schema_version"] == "1.0");
    CHECK(doc["mesh"]["axes"] == json::parse(R"json([{"name":"dp","size":2},{"name":"tp","size":4}])json"));
    CHECK(doc["refined_mesh"]["axes"].size() == 3);
    CHECK(doc["provider"]["name"] == "local");
    CHECK(doc["provider"]["reasons"].size() == 2);
    CHECK(doc["totals"]["parameters"] == 22528);
    CHECK(doc["totals"]["parameter_bytes"] == 45056);
    CHECK(doc["memory"]["per_device"] ==
          json::parse(R"json({"parameters":10240,"cache":2048,"arena":3584,"activations":2560,
                                                         "communication":1024,"total":15872})json"));
    CHECK(doc["notes"].size() == 1);
    CHECK(doc["activations"][0]["axes"] == json::parse(R"json([["dp"],[],["tp"]])json"));
    CHECK(doc["sequence"].size() == 5);
    CHECK(doc["collectives"][0] == json::parse(R"json({"kind":"all-gather","axes":["tp"],"count":4,"payload_bytes":1024,
                                                   "wire_bytes":3072,"wire_bytes_total":24576})json"));
    CHECK(doc["diagnostics"][0] == json::parse(R"json({"code":"SP4006","severity":"warning","message":"fraction",
        "pointer":"/partition_axis","hint":"hint","file":null,"line":null,"column":null,"end_line":null,
        "end_column":null})json"));
}

TEST_CASE("tensors in the JSON") {
    const json doc = json::parse(json_text(tiny_plan()));
    CHECK(doc["tensors"].size() == 5);
    CHECK(doc["tensors"][1] == json::parse(R"json({"name":"model.layers.{0..3}.self_attn.qkv_proj.weight [q]",
        "pattern":"model.layers.{}.self_attn.qkv_proj.weight","part":"q","kind":"parameter","role":"column",
        "layers":[0,1,2,3],"shape":[32,32],"dtype":"bf16","axes":[["tp"],["dp"]],"spec":"P('tp','dp')",
        "local_shape":[8,16],"bytes":2048,"bytes_per_device":256,"replicas":1,"reason":"head_axis"
})json"));
    CHECK(doc["tensors"][0]["layers"].empty());
    CHECK(doc["tensors"][4]["kind"] == "cache");
}

TEST_CASE("steps in the JSON") {
    const json layer = json::parse(json_text(tiny_plan()))["layers"][1];
    CHECK(layer["layers"] == json::parse("[0,1,2,3]"));
    CHECK(layer["uses"] == 4);
    const json& gather = layer["steps"][0];
    CHECK(gather["collective"] == "all-gather");
    CHECK(gather["module"].is_null());
    CHECK(gather["axes"] == json::parse(R"json(["tp"])json"));
    CHECK(gather["payload_bytes"] == 256);
    CHECK(gather["wire_bytes"] == 768);
    CHECK(gather["inputs"] == json::parse(R"json([{"value":0,"name":"hidden","local_shape":[2,8,8]}])json"));
    CHECK(gather["outputs"][0]["local_shape"] == json::parse("[2,8,32]"));
    const json& linear = layer["steps"][1];
    CHECK(linear["op"] == "up_proj");
    CHECK(linear["module"] == "ColumnParallelLinear");
    CHECK(linear["wire_bytes"] == 0);
    CHECK(linear["inputs"].size() == 2);
    CHECK(layer["values"][5]["partial_over"] == json::parse(R"json(["tp"])json"));
    CHECK(layer["values"][5]["spec"] == "P('dp',None,None)");
    CHECK(layer["weight_uses"][1] ==
          json::parse(R"json({"op":"down_proj","use":"stationary","chosen_bytes":512,"alternative_bytes":null})json"));
}

TEST_CASE("the resolved job in the JSON") {
    plan::Plan plan = tiny_plan();
    plan.job.rule_source = partition::RuleSource::custom;
    plan.job.custom_rules = {{".*", {{{"tp"}, {}}}, "/partition/rules/0"}};
    plan.job.partition_axis.set("head_axis", {"fsdp"}, "/partition_axis/head_axis");
    plan.job.model.layers[1].sliding_window = 128;
    const json job = json::parse(json_text(plan))["job"];
    CHECK(job["partition"]["rules"] == "custom");
    CHECK(job["partition"]["custom_rules"] == json::parse(R"json([{"pattern":".*","spec":"P('tp',None)"
}])json"));
    CHECK(job["partition"]["axes"].size() == 16);
    CHECK(job["partition"]["axes"][5] == json::parse(R"json({"semantic":"head","field":"head_axis","given":true,
                                                         "stored_over":["fsdp"],"step_over":["fsdp"]})json"));
    CHECK(job["model"]["layers"].size() == 2);
    CHECK(job["model"]["layers"][0]["layers"] == json::parse("[0,2,3]"));
    CHECK(job["workload"]["mode"] == "prefill");
    CHECK(job["provider"] == "auto");
}

TEST_CASE("equal plans give equal bytes, and the hash is that of the bytes") {
    CHECK(json_text(tiny_plan()) == json_text(tiny_plan()));
    CHECK(report::plan_hash(tiny_plan()) == base::fnv1a(json_text(tiny_plan())));
    CHECK(report::hash_text(0xabcU) == "0000000000000abc");
}

TEST_CASE("whatever execution depends on changes the hash") {
    const std::uint64_t hash = report::plan_hash(tiny_plan());
    const auto changed = [&](auto&& change) {
        plan::Plan plan = tiny_plan();
        change(plan);
        return report::plan_hash(plan) != hash;
    };
    CHECK(changed([](plan::Plan& p) { p.job.model.norm.eps = 1e-6; }));
    CHECK(changed([](plan::Plan& p) { p.job.model.attention.rope.inverse_frequencies = {1.0F, 0.1F}; }));
    CHECK(changed([](plan::Plan& p) { p.job.workload.batch_size = 8; }));
    CHECK(changed([](plan::Plan& p) { p.blocks[1].values[2].layout = partition::Layout::replicated(2); }));
    CHECK(changed([](plan::Plan& p) { p.blocks[1].values[3].layout.pending.insert(mesh::AxisId{0}); }));
    CHECK(changed([](plan::Plan& p) { p.blocks[1].steps[0].collective->dim = 1; }));
    CHECK(changed([](plan::Plan& p) { p.blocks[1].steps[1].last_use = {}; }));
    CHECK(changed([](plan::Plan& p) { std::swap(p.blocks[1].steps[1], p.blocks[1].steps[2]); }));
}
