// Which fields hold in a step of generation: decode and insert, in both dialects.
#include <doctest/doctest.h>

#include "plan/planning.h"

using namespace shardplan;

namespace {

std::string activation(const plan::Plan& plan, const std::string& name) {
    for (const plan::ActivationSpec& spec : plan.activations) {
        if (spec.name == name) {
            return partition::to_string(spec.spec);
        }
    }
    throw std::runtime_error("no activation " + name);
}

struct Row {
    const char* mode;
    const char* compat;
    const char* axes;
    const char* query;
    const char* key;
    const char* cache;
};

const char* const seed_fields = R"("hidden_state_axis": null, "generation_head_axis": "sp",
    "generation_query_sequence_axis": "tp")";
const char* const no_sequence = R"("hidden_state_axis": null, "generation_head_axis": "sp")";
const char* const current_fields = R"("hidden_state_axis": null, "decode_head_axis": "sp", "decode_kv_head_axis": "sp",
    "decode_query_sequence_axis": "tp")";
const char* const nothing =
    R"("hidden_state_axis": null, "decode_head_axis": null, "decode_query_sequence_axis": null)";

// The cache has the fields of training in every step.
const std::vector<Row> rows = {
    {"prefill", "seed", seed_fields, "P(None,'sp','tp',None)", "P(None,'sp','tp',None)", ""},
    {"decode", "seed", no_sequence, "P(None,None,'sp',None)", "P(None,None,'sp',None)", "P(None,'sp','tp',None)"},
    {"insert", "seed", seed_fields, "P(None,'sp','tp',None)", "P(None,'sp','tp',None)", "P(None,'sp','tp',None)"},
    {"prefill", "current", current_fields, "P(None,'sp','tp',None)", "P(None,'sp','tp',None)", ""},
    {"insert", "current", current_fields, "P(None,'tp','sp',None)", "P(None,None,'sp',None)", "P(None,'sp','tp',None)"},
    {"insert", "current", nothing, "P(None,'sp','tp',None)", "P(None,None,'tp',None)", "P(None,'sp','tp',None)"},
    {"decode", "current", nothing, "P(None,None,'tp',None)", "P(None,None,'tp',None)", "P(None,'sp','tp',None)"},
};

test::JobText job_of(const Row& row) {
    const bool insert = std::string(row.mode) == "insert";
    return {.mesh = R"("tp": 2, "sp": 2)",
            .axes = row.axes,
            .workload = fmt::format(R"("mode": "{}", "batch_size": 2, "sequence_length": 16{})", row.mode,
                                    insert ? R"(, "insert_length": 4)" : ""),
            .options = fmt::format(R"("compat": "{}")", row.compat)};
}

}  // namespace

TEST_CASE("the fields of generation hold in decode, and in insert of the dialect that has it") {
    for (const Row& row : rows) {
        CAPTURE(row.mode);
        CAPTURE(row.compat);
        CAPTURE(row.axes);
        const plan::Plan plan = test::plan_of(job_of(row));
        CHECK(activation(plan, "query") == row.query);
        CHECK(activation(plan, "key, value") == row.key);
        if (*row.cache != '\0') {
            CHECK(test::spec(plan, "cache.k") == row.cache);
        }
        const bool as_prefill = std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
            return test::contains(note, "have the fields of prefill");
        });
        CHECK(as_prefill == (std::string(row.mode) == "insert" && std::string(row.compat) == "seed"));
    }
}

TEST_CASE("an insert of one token is a decode step in the seed's dialect too") {
    test::JobText job = job_of({"insert", "seed", no_sequence, "", "", ""});
    job.workload = R"("mode": "insert", "batch_size": 2, "sequence_length": 16, "insert_length": 1)";
    const plan::Plan plan = test::plan_of(job);
    CHECK(activation(plan, "query") == "P(None,None,'sp',None)");
    CHECK(plan.graph.workload.query_length() == 1);
}

TEST_CASE("inserted tokens that an axis does not divide") {
    test::JobText job = job_of({"insert", "current", nothing, "", "", ""});
    job.workload = R"("mode": "insert", "batch_size": 2, "sequence_length": 16, "insert_length": 5)";
    const test::Planned planned = test::try_plan(job);
    CHECK_FALSE(planned.plan.has_value());
    CHECK(test::contains(planned.first("SP4003").message, "insert_length 5 is not a multiple of"));
    CHECK(planned.first("SP4003").hint == "the next insert_length that works is 6");
}
