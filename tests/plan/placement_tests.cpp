// From PartitionAxis and rules to specs: what is refused, what is dropped, what the messages say, who decided.
#include <sstream>

#include "plan/planning.h"
#include "report/plan_json.h"

namespace shardplan::plan {

using test::JobText;
using test::plan_of;
using test::Planned;
using test::spec;
using test::stored;
using test::try_plan;

namespace {

struct Finding {
    const char* name;
    JobText job;
    const char* code;
    const char* message;  ///< a part of it
    const char* pointer;
    const char* hint;  ///< a part of it
};

const char* const llama_24_heads = R"("model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 24,
    "hidden_size": 192, "num_key_value_heads": 6, "intermediate_size": 96, "tie_word_embeddings": false)";

const Finding refusals[] = {
    {"an axis that the mesh does not have",
     {.mesh = R"("tp": 2)", .axes = R"("head_axis": "tpp")"},
     "SP4002",
     "head_axis names axis 'tpp', which the mesh does not have",
     "/partition_axis/head_axis",
     "axes of the mesh: tp; did you mean 'tp'?"},
    {"one axis for two dimensions",
     {.mesh = R"("tp": 2)", .axes = R"("batch_axis": "tp")"},
     "SP4001",
     "axis 'tp' is used twice in hidden: by batch_axis in dimension 0 (batch_size) and by hidden_state_axis in "
     "dimension 2 (hidden_size)",
     "/partition_axis/batch_axis",
     "at most one dimension"},
    {"one axis twice in one field",
     {.mesh = R"("x": 2)", .axes = R"("hidden_state_axis": ["x", "x"])"},
     "SP4001",
     "axis 'x' stands twice in hidden_state_axis, which cuts dimension 2 (hidden_size) of hidden",
     "/partition_axis/hidden_state_axis",
     "write each axis once"},
    {"a batch that does not divide",
     {.mesh = R"("dp": 4)", .workload = R"("batch_size": 6, "sequence_length": 16)"},
     "SP4003",
     "batch_size 6 is not a multiple of batch_axis dp=4 (remainder 2): dimension 0",
     "/mesh/axes/dp",
     "the next batch_size that works is 8"},
    {"a sequence over two axes",
     {.mesh = R"("a": 2, "b": 3)", .axes = R"("sequence_axis": ["a", "b"])"},
     "SP4003",
     "sequence_length 16 is not a multiple of sequence_axis a=2 * b=3 = 6 (remainder 4): dimension 1",
     "/partition_axis/sequence_axis",
     "the next sequence_length that works is 18"},
    {"a model dimension",
     {.mesh = R"("x": 3)", .axes = R"("hidden_state_axis": "x")"},
     "SP4003",
     "hidden_size 64 is not a multiple of hidden_state_axis x=3 (remainder 1): dimension 2 of hidden",
     "/partition_axis/hidden_state_axis",
     "sizes of x that work for all that it cuts: 1, 2, 4, 8, 16, 32, 64"},
    {"heads, not head * head_dim",
     {.mesh = R"("x": 16)", .axes = R"("head_axis": "x", "kv_head_axis": null)"},
     "SP4003",
     "num_attention_heads 8 is not a multiple of head_axis x=16 (remainder 8)",
     "/partition_axis/head_axis",
     "sizes of x that work for all that it cuts: 1, 2, 4, 8"},
    {"kv heads that can not be shared evenly",
     {.mesh = R"("tp": 8)", .axes = R"("hidden_state_axis": null)", .model = llama_24_heads},
     "SP4007",
     "num_key_value_heads 6 can neither be cut over nor shared evenly by head_axis tp=8",
     "/mesh/axes/tp",
     "sizes that work with 24 query heads and all else that these axes cut: 1, 2"},
    {"a spec longer than the tensor",
     {.mesh = R"("tp": 2)", .rules = R"([["norm", ["tp", null]], [".*", ["tp"]]])"},
     "SP4008",
     "P('tp',None) has 2 entries, but model.layers.{}.input_layernorm.weight has 1 dimensions",
     "/partition_rules/0",
     "never longer"},
    {"a pattern that is none",
     {.mesh = R"("tp": 2)", .rules = R"([[".*", []], ["(", ["tp"]]])"},
     "SP4005",
     "'('",
     "/partition_rules/1",
     "ECMAScript"},
    {"an unknown axis in a rule",
     {.mesh = R"("tp": 2)", .rules = R"([[".*", ["sp"]]])"},
     "SP4002",
     "names axis 'sp'",
     "/partition_rules/0",
     "axes of the mesh: tp"},
    {"the inference provider with too few tokens",
     {.mesh = R"("tp": 4)",
      .axes = R"("hidden_state_axis": null)",
      .workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)",
      .backend = "inference"},
     "SP5001",
     "'inference'",
     "/backend/provider",
     "auto"},
};

std::string json_of(const Plan& plan) {
    std::ostringstream out;
    report::write_plan_json(out, plan, {});
    return out.str();
}

}  // namespace

TEST_CASE("what has no plan, and what the message says") {
    for (const Finding& row : refusals) {
        CAPTURE(row.name);
        const Planned planned = try_plan(row.job);
        CHECK_FALSE(planned.plan.has_value());
        const diag::Diagnostic& found = planned.first(row.code);
        CHECK(found.severity == diag::Severity::error);
        CHECK_MESSAGE(test::contains(found.message, row.message), found.message);
        CHECK(found.pointer == row.pointer);
        CHECK_MESSAGE(test::contains(found.hint, row.hint), found.hint);
    }
}

TEST_CASE("with indivisible: drop the entry becomes None and is reported") {
    const Planned heads = try_plan({.mesh = R"("tp": 3)", .options = R"("indivisible": "drop")"});
    REQUIRE(heads.plan.has_value());
    CHECK(heads.first("SP4004").severity == diag::Severity::warning);
    CHECK(spec(*heads.plan, "q_proj") == "P(None,None)");
    CHECK(spec(*heads.plan, "down_proj") == "P(None,'tp')");  // 96 = 3 * 32

    const Planned unknown =
        try_plan({.mesh = R"("tp": 2)", .axes = R"("head_axis": ["tp", "xy"])", .options = R"("indivisible": "drop")"});
    REQUIRE(unknown.plan.has_value());
    CHECK_MESSAGE(test::contains(unknown.first("SP4004").message, "'xy'"), unknown.first("SP4004").message);
    CHECK(spec(*unknown.plan, "q_proj") == "P(None,None)");

    // An axis for two dimensions has no right reading: an error here as well.
    const Planned twice =
        try_plan({.mesh = R"("tp": 2)", .axes = R"("batch_axis": "tp")", .options = R"("indivisible": "drop")"});
    CHECK_FALSE(twice.plan.has_value());
}

TEST_CASE("axes of defaults that the mesh does not have count as 1, with a note") {
    const Planned planned = try_plan({.mesh = R"("tp": 2)"});
    REQUIRE(planned.plan.has_value());
    CHECK_FALSE(planned.diagnostics.has_errors());
    const std::vector<std::string>& notes = planned.plan->notes;
    for (const char* axis : {"'fsdp'", "'dp'", "'sp'"}) {
        CHECK(std::count_if(notes.begin(), notes.end(),
                            [&](const std::string& note) { return note.find(axis) != std::string::npos; }) == 1);
    }
    CHECK(spec(*planned.plan, "q_proj") == "P('tp',None)");
}

TEST_CASE("derived specs: the parallel dimension and the storage") {
    const Plan plan = plan_of({.mesh = R"("dp": 1, "fsdp": 2, "tp": 2, "sp": 1)"});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head", "embed_tokens"}) {
        CHECK_MESSAGE(spec(plan, name) == "P('tp',('fsdp','sp'))", name);
    }
    CHECK(spec(plan, "o_proj") == "P(('fsdp','sp'),'tp')");
    CHECK(spec(plan, "down_proj") == "P(('fsdp','sp'),'tp')");
    CHECK(spec(plan, "input_layernorm") == "P(None,)");
    CHECK(stored(plan, "q_proj").local_shape == tensor::Shape{32, 32});
    CHECK(stored(plan, "q_proj").reason.find("head_axis (default)") != std::string::npos);
    CHECK(stored(plan, "input_layernorm").replicas == 4);
}

TEST_CASE("more devices than kv heads") {
    const char* axes = R"("hidden_state_axis": null)";
    const Plan shared = plan_of({.mesh = R"("tp": 8)", .axes = axes});
    CHECK(spec(shared, "q_proj") == "P('tp',None)");
    CHECK(spec(shared, "k_proj") == "P('tp:(1)4',None)");
    CHECK(stored(shared, "k_proj").local_shape == tensor::Shape{8, 64});  // one whole head
    CHECK(stored(shared, "k_proj").replicas == 2);

    const Plan split = plan_of({.mesh = R"("tp": 8)", .axes = axes, .options = R"("kv_heads": "split")"});
    CHECK(spec(split, "k_proj") == "P('tp',None)");
    CHECK(stored(split, "k_proj").local_shape == tensor::Shape{4, 64});  // half a head
    CHECK(stored(split, "k_proj").replicas == 1);

    const Plan two =
        plan_of({.mesh = R"("a": 2, "b": 4)", .axes = R"("hidden_state_axis": null, "head_axis": ["a", "b"])"});
    CHECK(spec(two, "k_proj") == "P(('a','b:(1)2'),None)");
}

TEST_CASE("custom rules: the first that matches, shorter specs are filled up") {
    const Plan plan = plan_of({.mesh = R"("x": 2, "y": 2)", .rules = R"j([
        ["q_proj", ["x", "y"]], ["self_attn", [null, ["y", "x"]]], ["q_proj", ["y"]], ["mlp.*(gate|up)", ["y"]]])j"});
    CHECK(spec(plan, "q_proj") == "P('x','y')");
    CHECK(spec(plan, "k_proj") == "P(None,('y','x'))");
    CHECK(spec(plan, "gate_proj") == "P('y',None)");
    CHECK(spec(plan, "down_proj") == "P(None,None)");
    CHECK(stored(plan, "k_proj").reason == "rule 1 'self_attn'");
    CHECK(stored(plan, "down_proj").reason.find("no rule matches") == 0);
}

TEST_CASE("rules that leave much unsharded are reported") {
    const Planned planned = try_plan({.mesh = R"("tp": 2)", .rules = R"([["embed", ["tp"]]])"});
    REQUIRE(planned.plan.has_value());
    CHECK(planned.first("SP4006").severity == diag::Severity::warning);
}

TEST_CASE("presets: specs of Flax kernels, turned to the checkpoint's order") {
    const char* mesh = R"("dp": 1, "fsdp": 2, "tp": 2, "sp": 1)";
    const Plan plan = plan_of({.mesh = mesh, .rules = R"("seed-0.0.80")"});
    CHECK(spec(plan, "q_proj") == "P('tp',('fsdp','sp'))");  // kernel P(('fsdp','sp'),'tp')
    CHECK(spec(plan, "o_proj") == "P(('sp','fsdp'),'tp')");  // kernel P('tp',('sp','fsdp'))
    const char* bigcode =
        R"("model_type": "gpt_bigcode", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 1)";
    const Planned unknown = try_plan({.mesh = mesh, .rules = R"("seed-0.0.80")", .model = bigcode});
    CHECK_MESSAGE(test::contains(unknown.first("SP4005").message, "gpt_bigcode"), unknown.first("SP4005").message);
}

TEST_CASE("a cache that is not given is as long as its axes need") {
    const auto cache = [](const char* workload) {
        const Plan plan = plan_of({.mesh = R"("sp": 6)",
                                   .axes = R"("weight_storage_axis": null, "sequence_axis": null)",
                                   .workload = workload});
        return stored(plan, "cache.k").shape[1];
    };
    CHECK(cache(R"("mode": "decode", "batch_size": 2, "sequence_length": 16)") == 36);
    CHECK(cache(R"("mode": "decode", "batch_size": 2, "sequence_length": 16, "cache_length": 48)") == 48);
}

TEST_CASE("equal jobs give equal bytes") {
    const JobText job = {.mesh = R"("fsdp": 2, "tp": 4)", .backend = "auto"};
    CHECK(json_of(plan_of(job)) == json_of(plan_of(job)));
    JobText other = job;
    other.workload = R"("batch_size": 4, "sequence_length": 16)";
    CHECK(json_of(plan_of(job)) != json_of(plan_of(other)));
    CHECK(report::plan_hash(plan_of(job)) != report::plan_hash(plan_of(other)));
}

}  // namespace shardplan::plan
