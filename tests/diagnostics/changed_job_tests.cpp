// Shipped jobs with something changed on the command line: the finding, where it points, and what it advises.
#include <doctest/doctest.h>

#include <algorithm>

#include "diagnostics/checked_job.h"

using namespace diagnostics_tests;

namespace {

const std::string dense = source_dir + "/configs/tiny-llama.4ranks.json";
const std::string insert = source_dir + "/configs/tiny-llama.insert.4ranks.json";

CheckedJob changed(const std::string& path, const config::Overrides& overrides) {
    return check_text(read_text(path), path, overrides);
}

struct Row {
    std::string file;
    config::Overrides overrides;
    std::string code;
    std::string pointer;
    std::string message;
    std::string hint;
};

bool is_of(const diag::Diagnostic& d, const Row& row) {
    return d.code == row.code && d.pointer == row.pointer && d.message.find(row.message) != std::string::npos &&
           d.hint.find(row.hint) != std::string::npos;
}

const std::string current = "options.compat=current";

const std::vector<Row> rows = {
    // An axis that the job names must exist, whether this step asks for the field or not.
    {dense,
     {.mesh = "dp=4", .set = {current, "partition_axis.data_parallel_axis=zz"}},
     "SP4002",
     "/partition_axis/data_parallel_axis",
     "data_parallel_axis names axis 'zz'",
     "dp"},
    {dense,
     {.mesh = "dp=4", .set = {current, "partition_axis.fully_sharded_data_parallel_axis=zz"}},
     "SP4002",
     "/partition_axis/fully_sharded_data_parallel_axis",
     "names axis 'zz'",
     "dp"},
    {dense,
     {.mesh = "dp=4",
      .set = {current, "partition_axis.fully_sharded_data_parallel_axis=dp", "partition_axis.data_parallel_axis=zz"}},
     "SP4002",
     "/partition_axis/data_parallel_axis",
     "names axis 'zz'",
     "dp"},
    {dense,
     {.set = {"partition_axis.expert_axis=zz"}},
     "SP4002",
     "/partition_axis/expert_axis",
     "expert_axis names axis 'zz'",
     "axes of the mesh"},
    {dense,
     {.set = {"partition_axis.generation_head_axis=zz"}},
     "SP4002",
     "/partition_axis/generation_head_axis",
     "generation_head_axis names axis 'zz'",
     "axes of the mesh"},
    {dense,
     {.set = {"partition_axis.expert_axis=zz", "options.indivisible=drop"}},
     "SP4004",
     "/partition_axis/expert_axis",
     "cuts nothing",
     "axes of the mesh"},
    {dense,
     {.set = {current, "partition_axis.data_parallel_axis=tp"}},
     "SP4001",
     "/partition_axis/data_parallel_axis",
     "by data_parallel_axis",
     "at most one dimension"},
    {dense, {.set = {"pipeline.axis=tp"}}, "SP3005", "/pipeline/axis", "names axis 'tp'", "cuts no tensor"},
    {dense, {.set = {"pipeline.axis=zz"}}, "SP4002", "/pipeline/axis", "names axis 'zz'", "add the axis"},
    // Hints that help.
    {insert,
     {.set = {"workload.cache_length=0", "workload.insert_length=4000"}},
     "SP6004",
     "/workload/insert_length",
     "insert_length 4000",
     "set insert_length to"},
    {dense,
     {.mesh = "sp=2", .mode = "decode", .set = {"partition_axis.generation_query_sequence_axis=sp"}},
     "SP4003",
     "/partition_axis/generation_query_sequence_axis",
     "query length 1",
     "one token of each sequence: set generation_query_sequence_axis to null"},
    {dense,
     {.mesh = "ep=3,dp=2",
      .set = {"partition_axis.weight_storage_axis=ep", "model.hidden_size=96", "model.intermediate_size=96",
              "workload.batch_size=6"}},
     "SP4010",
     "/mesh/axes/ep",
     "stores weights",
     "a multiple of 6"},
    // Ranges and types in the words of the field.
    {dense, {.set = {"model.rope_theta=1e300"}}, "SP1006", "/model/rope_theta", "lie above 0, up to 1e+30", ""},
    {dense, {.set = {"model.rope_theta=0"}}, "SP1006", "/model/rope_theta", "greater than 0", ""},
    {dense,
     {.set = {"model.quantization_config=awq"}},
     "SP1005",
     "/model/quantization_config",
     "must be an object",
     ""},
    {dense,
     {.set = {"model.quantization_config={\"quant_method\":\"gptq\",\"group_size\":0}"}},
     "SP1006",
     "/model/quantization_config/group_size",
     "be -1",
     ""},
    {dense,
     {.set = {"model.quantization_config={\"quant_method\":\"fp8\",\"weight_block_size\":[0,128]}"}},
     "SP1006",
     "/model/quantization_config/weight_block_size",
     "both sizes of weight_block_size must lie in 1",
     ""},
    {dense, {.set = {"device_memory=null"}}, "SP1005", "/device_memory", "or text such as", ""},
    {dense, {.mesh = "tp=-2"}, "SP3001", "/mesh/axes/tp", "must be at least 1, got -2", "-1"},
    {dense, {.mesh = "$comment=2,tp=2"}, "SP3001", "/mesh/axes/$comment", "name of a comment", ""},
    {dense, {.set = {"model.model_type="}}, "SP2001", "/model/model_type", "model_type is empty", "llama"},
};

}  // namespace

TEST_CASE("a change that does not work is named, where it stands, with what would work") {
    for (const Row& row : rows) {
        const CheckedJob result = changed(row.file, row.overrides);
        INFO(row.code << " " << row.pointer << text_of(result.checked));
        const auto& all = result.checked.all();
        CHECK(std::any_of(all.begin(), all.end(), [&](const diag::Diagnostic& d) { return is_of(d, row); }));
    }
}

TEST_CASE("the sizes offered suit the cache as well") {
    const std::vector<std::string> set = {"workload.cache_length=48", "partition_axis.vocab_axis=sp",
                                          "partition_axis.weight_storage_axis=null", "model.vocab_size=101"};
    const CheckedJob given = changed(dense, {.mesh = "sp=3", .mode = "decode", .set = set});
    INFO(text_of(given.checked));
    REQUIRE(given.checked.has_errors());
    for (const diag::Diagnostic& d : given.checked.all()) {
        CHECK(d.hint.find("cuts: 1, 101") == std::string::npos);
    }
    const CheckedJob chosen = changed(dense, {.mesh = "sp=3", .mode = "decode", .set = {set.begin() + 1, set.end()}});
    INFO(text_of(chosen.checked));
    const auto& all = chosen.checked.all();
    CHECK(std::any_of(all.begin(), all.end(),
                      [](const diag::Diagnostic& d) { return d.hint.find("cuts: 1, 101") != std::string::npos; }));
}

TEST_CASE("a tied head cut otherwise is reported beside sizes that do not divide") {
    const CheckedJob result = changed(
        dense, {.mesh = "tp=3",
                .set = {"model.tie_word_embeddings=true",
                        R"(partition_rules=[["embed_tokens",["tp",null]],["lm_head",[null,"tp"]],[".*",[]]])"}});
    const std::string text = text_of(result.checked);
    INFO(text);
    CHECK(text.find("SP4003") != std::string::npos);
    CHECK(text.find("P(None,'tp'), rule 0 gives model.embed_tokens.weight P('tp',None)") != std::string::npos);
}

TEST_CASE("an error of the mesh makes no other of the memory of its devices") {
    const std::string text =
        R"({"model": "models/tiny-llama.json", "mesh": {"axes": {"tp": -1}}, "device_memory": ["80GB", "80GB"]})";
    const CheckedJob result = check_text(text, source_dir + "/configs/x.json");
    INFO(text_of(result.checked));
    CHECK(result.checked.error_count() == 1);
    CHECK(result.checked.all().front().code == "SP3002");
}

TEST_CASE("what only the activations exceed is not put down to what is stored") {
    const CheckedJob result =
        changed(dense, {.set = {"device_memory=\"2MB\"", "workload.batch_size=256", "workload.sequence_length=256"}});
    INFO(text_of(result.checked));
    REQUIRE(result.checked.has_errors());
    CHECK(text_of(result.checked).find("for the activations of a step") != std::string::npos);
}
