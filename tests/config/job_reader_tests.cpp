#include "config/job_reader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

using namespace shardplan;

namespace {

constexpr std::string_view model_text =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
        "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "float32"})";

/// A job on one line: `rest` after the model.
std::string job_text(std::string_view rest) {
    return fmt::format("{{\n\"model\": {},\n{}\n}}", model_text, rest);
}

struct Outcome {
    std::optional<plan::Job> job;
    std::vector<std::string> problems;  ///< "CODE file:line:column message | hint"
};

Outcome read(const std::string& text, const config::Overrides& overrides = {}) {
    diag::Diagnostics diagnostics;
    Outcome outcome;
    outcome.job = config::read_job({"job.json", text, ""}, overrides, diagnostics);
    for (const diag::Diagnostic& d : diagnostics.all()) {
        if (d.severity == diag::Severity::error) {
            REQUIRE(d.span);
            outcome.problems.push_back(fmt::format("{} {}:{}:{} {} | {}", d.code, d.span->file, d.span->line,
                                                   d.span->column, d.message, d.hint));
        }
    }
    CHECK(outcome.job.has_value() == outcome.problems.empty());
    return outcome;
}

bool contains(const std::vector<std::string>& problems, std::string_view text) {
    for (const std::string& problem : problems) {
        if (problem.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

const std::string mesh_line = R"("mesh": {"axes": {"dp": 1, "tp": 2}})";

}  // namespace

TEST_CASE("a minimal job gets the defaults") {
    const Outcome outcome = read(job_text(mesh_line));
    REQUIRE(outcome.job);
    const plan::Job& job = *outcome.job;
    CHECK(job.name == "job");
    CHECK(job.model.hidden == 64);
    CHECK(job.mesh == mesh::Mesh({{"dp", 1}, {"tp", 2}}));
    CHECK(job.rule_source == partition::RuleSource::derived);
    CHECK(job.provider == backend::ProviderChoice::automatic);
    CHECK(job.dispatcher == plan::TokenDispatcher::automatic);
    CHECK(job.experts == backend::ExpertOptions{});
    CHECK_FALSE(job.int8_weights);
    CHECK(job.workload.mode == model::Mode::prefill);
    CHECK(job.workload.sequence_length == 128);
    CHECK(job.workload.dtype == tensor::DType::f32);  // as the model is stored
    CHECK(job.options.indivisible == plan::Indivisible::strict);
    CHECK(job.options.compat == partition::Compat::seed);
}

TEST_CASE("every section is read") {
    const Outcome outcome = read(job_text(R"("$schema": "x", "$comment": ["any"],
"mesh": {"$comment": "m", "axes": {"sp": 2, "tp": -1, "$comment": 0}, "devices": 8},
"partition_axis": {"hidden_state_axis": null, "head_axis": ["tp", "sp"], "batch_axis": "sp"},
"partition_rules": [["wte", ["tp", null]], ["bias$", []], [".*", [["sp", "tp"]]]],
"backend": {"provider": "transformer_engine", "moe_token_dispatcher_type": "alltoall", "moe_use_grouped_gemm": false,
    "moe_use_legacy_grouped_gemm": true, "weight_dtype": "int8"},
"workload": {"mode": "decode", "batch_size": 4.0, "sequence_length": 100, "cache_length": 256, "dtype": "bfloat16"},
"options": {"indivisible": "drop", "kv_heads": "split", "cp_comm_type": "p2p",
                "context_parallel_load_balance": true})"));
    REQUIRE(outcome.job);
    const plan::Job& job = *outcome.job;
    CHECK(job.mesh == mesh::Mesh({{"sp", 2}, {"tp", 4}}));
    const auto head = job.partition_axis.resolve(partition::Semantic::head, partition::Phase::prefill);
    CHECK(head.axes == partition::SpecEntry{"tp", "sp"});
    CHECK(head.given);
    CHECK(head.pointer == "/partition_axis/head_axis");
    const auto embed = job.partition_axis.resolve(partition::Semantic::embed, partition::Phase::prefill);
    CHECK((embed.given && embed.axes.empty()));
    REQUIRE(job.custom_rules.size() == 3);
    CHECK(job.rule_source == partition::RuleSource::custom);
    CHECK(job.custom_rules[0].spec == partition::PartitionSpec{{{"tp"}, {}}});
    CHECK(job.custom_rules[1].spec.entries.empty());
    CHECK(job.custom_rules[2].pattern == ".*");
    CHECK(job.custom_rules[2].pointer == "/partition_rules/2");
    CHECK(job.provider == backend::ProviderChoice::fused);
    CHECK(job.dispatcher == plan::TokenDispatcher::all_to_all);
    CHECK(job.experts == backend::ExpertOptions{false, true});
    CHECK(job.int8_weights);
    CHECK(job.workload.mode == model::Mode::decode);
    CHECK(job.workload.batch_size == 4);
    CHECK(job.workload.cache_length == 256);
    CHECK(job.workload.dtype == tensor::DType::bf16);
    CHECK(job.options.indivisible == plan::Indivisible::drop);
    CHECK(job.options.kv_heads == plan::KvHeads::split);
    CHECK(job.options.cp_comm_type == plan::CpCommType::p2p);
    CHECK(job.options.context_parallel_load_balance);
}

TEST_CASE("each mistake is named with its place and what would work") {
    struct Row {
        std::string rest;
        std::string expected;
    };
    const std::vector<Row> rows = {
        {R"("mesh": {"axes": {"tp": 2}}, "wrkload": {})",
         R"(SP1004 job.json:4:30 the job has no key "wrkload" | did you mean "workload"?)"},
        {R"("mesh": {"axes": {"tp": 2}, "device": 2})", R"(did you mean "devices"?)"},
        {R"("mesh": {"axes": {"tp": 2}}, "backend": {"moe_token_dispatcher_type": "all2all"})",
         R"(did you mean "alltoall"?)"},
        {R"("mesh": {"axes": {"tp": 2}}, "backend": {"weight_dtype": "int4"})", "SP1008 job.json:4:58"},
        {R"("mesh": {"axes": {"tp": 2}}, "backend": {"moe_use_grouped_gemm": 1})",
         "SP1005 job.json:4:66 backend.moe_use_grouped_gemm must be true or false, not 1"},
        {R"("mesh": {"axes": {"tp": true}})", "SP1005 job.json:4:25 mesh.axes.tp must be an integer, not true"},
        {R"("mesh": {"axes": {"tp": "2"}})", R"(mesh.axes.tp must be an integer, not "2")"},
        {R"("mesh": {"axes": {"tp": 2.5}})", "mesh.axes.tp must be an integer, not 2.5"},
        {R"("mesh": {"axes": {"tp": null}})", "mesh.axes.tp must be an integer, not null"},
        {R"("mesh": {"axes": {"tp": 99999999999999999999}})", "SP1006 job.json:4:25 mesh.axes.tp must lie in"},
        {R"("mesh": {"axes": {"tp": 0}})", "SP3001 job.json:4:25"},
        {R"("mesh": {"axes": {"tp": -1}})", "SP3002 job.json:4:25"},
        {R"("mesh": {"axes": {"tp": 2}, "devices": 4})", "SP3003 job.json:4:18"},
        {R"("mesh": {"axes": {}})", "SP3001 job.json:4:18"},
        {R"("mesh": {"axes": [2]})", "SP1005 job.json:4:18 mesh.axes must be an object of axis names and sizes"},
        {R"("mesh": {})", R"(SP1007 job.json:4:9 mesh needs the key "axes")"},
        {R"("mesh": [1])", "SP1005 job.json:4:9 mesh must be an object, not an array"},
        {R"("workload": {})", R"(SP1007 job.json:1:1 the job needs the key "mesh")"},
        {mesh_line + R"(, "workload": {"mode": "prefil"})", R"(did you mean "prefill"?)"},
        {mesh_line + R"(, "workload": {"mode": 1})", "workload.mode must be a string, not 1"},
        {mesh_line + R"(, "workload": {"batch_size": 0})",
         "SP1006 job.json:4:66 workload.batch_size must lie in 1 ..."},
        {mesh_line + R"(, "workload": {"cache_length": -1})", "SP1006"},
        {mesh_line + R"(, "workload": {"dtype": "f16"})",
         "SP1008 job.json:4:61 workload.dtype must be one of bf16, f32"},
        {mesh_line + R"(, "backend": "fussed")", R"(did you mean "fused"?)"},
        {mesh_line + R"(, "backend": {"provider": null})", "backend.provider must be a string, not null"},
        {mesh_line + R"(, "backend": 3)", "backend must be an object, not 3"},
        {mesh_line + R"(, "options": {"compat": "new"})", "options.compat must be one of seed, current; not \"new\""},
        {mesh_line + R"(, "partition_axis": {"head_axs": "tp"})", R"(did you mean "head_axis"?)"},
        {mesh_line + R"(, "partition_axis": {"head_axis": 1})", "partition_axis.head_axis must be null, the name"},
        {mesh_line + R"(, "partition_axis": {"head_axis": ["tp", null]})",
         "partition_axis.head_axis.1 must be the name"},
        {mesh_line + R"(, "partition_axis": {"head_axis": ""})", "must be the name of a mesh axis"},
        {mesh_line + R"(, "partition_rules": "seed-0.0.8")", R"(did you mean "seed-0.0.80"?)"},
        {mesh_line + R"(, "partition_rules": {})", "partition_rules must be the name of a preset or a list"},
        {mesh_line + R"(, "partition_rules": [["a"]])", "partition_rules.0 must be a pair"},
        {mesh_line + R"(, "partition_rules": [["a", [3]]])", "partition_rules.0.1.0 must be null, the name"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.rest);
        const auto problems = read(job_text(row.rest)).problems;
        REQUIRE(problems.size() == 1);
        CAPTURE(problems[0]);
        CHECK(problems[0].find(row.expected) != std::string::npos);
    }
}

TEST_CASE("all problems come at once, the model's included") {
    const auto problems = read(R"({"model": {"model_type": "llama", "hidden_size": true},
 "mesh": {"axes": {"tp": 0}}, "backend": "x", "typo": 1})")
                              .problems;
    CHECK(contains(problems, "job.json:1:50"));  // the true
    CHECK(contains(problems, "SP3001 job.json:2:26"));
    CHECK(contains(problems, "SP1008 job.json:2:42"));
    CHECK(contains(problems, "SP1004 job.json:2:47"));
}

TEST_CASE("fields of the dialect that options.compat names") {
    const std::string axis = mesh_line + R"(, "partition_axis": {"decode_head_axis": "tp"})";
    CHECK(contains(read(job_text(axis)).problems, "SP1004"));
    CHECK(read(job_text(axis + R"(, "options": {"compat": "current"})")).job);
}

TEST_CASE("the root must be an object") {
    CHECK(contains(read("[1,2]").problems, "SP1005 job.json:1:1 the job must be an object, not an array"));
    CHECK(contains(read("null").problems, "the job must be an object, not null"));
    CHECK(contains(read("").problems, "SP1002 job.json:1:1 the file is empty"));
}

TEST_CASE("a bare model config is a job when the mesh is given") {
    config::Overrides overrides;
    const std::string bare(model_text);
    CHECK(contains(read(bare).problems, "--mesh"));
    overrides.mesh = "tp=4";
    const Outcome outcome = read(bare, overrides);
    REQUIRE(outcome.job);
    CHECK(outcome.job->mesh == mesh::Mesh({{"tp", 4}}));
    CHECK(contains(read(R"({"model_type": "llama", "hidden_size": 0})", overrides).problems, "job.json:1:40"));
}

TEST_CASE("overrides replace values, and their places name the option") {
    config::Overrides overrides;
    overrides.mesh = "sp=2,tp=-1";
    overrides.ranks = 8;
    overrides.mode = "decode";
    overrides.layers = 3;
    overrides.set = {"workload.batch_size=6", R"(partition_axis.head_axis=["tp","sp"])", "backend.provider=local",
                     "partition_axis.hidden_state_axis=null", "workload.dtype=bf16"};
    const Outcome outcome =
        read(job_text(R"("mesh": {"axes": {"dp": 1}, "devices": 1}, "workload": {"batch_size": 2})"), overrides);
    REQUIRE(outcome.job);
    const plan::Job& job = *outcome.job;
    CHECK(job.mesh == mesh::Mesh({{"sp", 2}, {"tp", 4}}));
    CHECK(job.workload.mode == model::Mode::decode);
    CHECK(job.workload.batch_size == 6);
    CHECK(job.workload.dtype == tensor::DType::bf16);
    CHECK(job.model.layer_count() == 3);
    CHECK(job.provider == backend::ProviderChoice::local);
    CHECK(job.partition_axis.resolve(partition::Semantic::head, partition::Phase::prefill).axes ==
          partition::SpecEntry{"tp", "sp"});
}

TEST_CASE("wrong overrides are named") {
    struct Row {
        config::Overrides overrides;
        std::string expected;
    };
    const std::vector<Row> rows = {
        {{.set = {"workload.batch_size=0"}}, "SP1006 <--set workload.batch_size>:1:21 workload.batch_size must lie"},
        {{.set = {"workload.batch=4"}}, "SP1004 <--set workload.batch>:1:1"},
        {{.set = {"workload.batch_size"}}, "SP1004 <--set workload.batch_size>:1:1"},
        {{.set = {"workload..x=1"}}, "is not key.path=value"},
        {{.set = {"partition_axis.head_axis=[\"tp\","}},
         "SP1002 <--set partition_axis.head_axis>:1:32 unexpected end of the document: the array opened at line 1, "
         "column 26"},
        {{.set = {R"(model={"a":1,"a":2})"}}, "SP1003 <--set model>:1:14"},
        {{.set = {"workload.batch_size=[1"}}, "SP1002 <--set workload.batch_size>:1:2"},
        {{.set = {R"(partition_axis={"generation_head_axis": "tp"})", "options.compat=current"}},
         "| write decode_head_axis, or set options.compat to seed"},
        {{.set = {R"(partition_axis={"decode_head_axis": "tp"})"}},
         "| write generation_head_axis, or set options.compat to current"},
        {{.set = {R"(partition_axis={"decode_batch_axis": "tp"})"}}, "| set options.compat to current"},
        {{.mesh = "$comment=2,tp=2"}, "SP3001 <--mesh>:1:1"},
        {{.mesh = "tp=-2"}, "SP3001 <--mesh>:1:1 size of mesh axis 'tp' must be at least 1, got -2"},
        {{.set = {"partition_axis.head_axis=[1]"}}, "SP1005 <--set partition_axis.head_axis>:1:27"},
        {{.set = {"mesh.axes.tp.x=1"}}, "SP1005 <--set mesh.axes.tp.x>:1:1 cannot set \"x\" in mesh/axes/tp"},
        {{.mesh = "tp=2,tp=2"}, "SP3001 <--mesh>"},
        {{.mesh = "tp"}, "SP3001 <--mesh>:1:1 'tp' is not a mesh axis"},
        {{.mesh = "dp=2,tp=0"}, "SP3001 <--mesh>:1:6"},
        {{.mesh = "tp=-1"}, "SP3002 <--mesh>:1:1"},
        {{.mode = "train"}, "SP1011 <--mode>:1:15"},
        {{.mode = "generate"}, "SP1008 <--mode>:1:15"},
        {{.layers = 5}, "SP6002 <--layers>:1:1 --layers must lie in 1 ... 4"},
        {{.layers = 0}, "SP6002"},
    };
    for (const Row& row : rows) {
        const auto problems = read(job_text(mesh_line), row.overrides).problems;
        CAPTURE(row.expected);
        REQUIRE(problems.size() == 1);
        CAPTURE(problems[0]);
        CHECK(problems[0].find(row.expected) != std::string::npos);
    }
}

TEST_CASE("overrides change the decoder where a config holds it in an object of its own") {
    const std::string nested =
        fmt::format(R"({{"model_type": "llava", "image_token_index": 7, "text_config": {}}})", model_text);
    const std::string job = fmt::format(R"({{"model": {}, {}}})", nested, mesh_line);
    struct Row {
        std::string text;
        config::Overrides overrides;
    };
    const std::vector<Row> one_layer = {
        {job, {.set = {"model.num_hidden_layers=1"}}},
        {job, {.set = {"model.text_config.num_hidden_layers=1"}}},
        {job, {.set = {"text_config.num_hidden_layers=1"}}},
        {nested, {.mesh = "tp=2", .set = {"text_config.num_hidden_layers=1"}}},
        {nested, {.mesh = "tp=2", .set = {"model.num_hidden_layers=1"}}},
        {nested, {.mesh = "tp=2", .set = {"num_hidden_layers=1"}}},
        {std::string(model_text), {.mesh = "tp=2", .set = {"num_hidden_layers=1"}}},
    };
    for (const Row& row : one_layer) {
        CAPTURE(row.overrides.set.front());
        const Outcome outcome = read(row.text, row.overrides);
        REQUIRE(outcome.job);
        CHECK(outcome.job->model.layer_count() == 1);
    }
    // A key that stands nowhere is one of the decoder; one that only the whole has stays there.
    const Outcome added = read(job, {.set = {"model.num_key_value_heads=2", "model.image_token_index=8"}});
    REQUIRE(added.job);
    CHECK(added.job->model.attention.kv_heads == 2);
    CHECK(contains(read(job, {.set = {"model.num_hidden_layers=0"}}).problems,
                   "SP1006 <--set model.num_hidden_layers>:1:25"));
    CHECK(contains(read(job, {.set = {"workloads.batch_size=1"}}).problems, "SP1004"));
}

TEST_CASE("an empty model_type is refused, within and without") {
    for (const std::string_view model :
         {R"({"model_type": ""})", R"({"model_type": "llava", "text_config": {"model_type": ""}})",
          R"({"model_type": "", "text_config": {"hidden_size": 64}})"}) {
        CAPTURE(model);
        const auto problems = read(fmt::format(R"({{"model": {}, {}}})", model, mesh_line)).problems;
        REQUIRE(problems.size() == 1);
        CHECK(problems[0].starts_with("SP2001"));
    }
}
