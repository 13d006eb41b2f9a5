#include "config/json_kind.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

using namespace shardplan;
using config::JsonKind;

TEST_CASE("jobs, configs of models and other JSON are told apart by their top level") {
    struct Row {
        std::string_view text;
        JsonKind kind;
    };
    const std::vector<Row> rows = {
        {R"({"model": "m.json", "mesh": {"axes": {"tp": 1}}})", JsonKind::job},
        {R"({"model": "m.json", "workload": {}})", JsonKind::job},  // the mesh may be forgotten
        {R"({"$schema": "./shardplan.schema.json"})", JsonKind::job},
        {R"({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"model": 1, "mesh": 2}})",
         JsonKind::other},
        {R"({"model": "m.json", "mesh": {"axes": {"tp": 1})", JsonKind::job},  // broken, but meant as a job
        {R"({"model": "m.json", "model": "n.json", "mesh": 1})", JsonKind::job},
        {R"({"model": )", JsonKind::job},
        {R"({model: "m.json", mesh: {axes: {tp: 1}}})", JsonKind::job},
        {R"({"modle": "m.json", "mesh": {"axes": {"tp": 1}}})", JsonKind::job},
        {R"({"modle": "m.json", "name": 1})", JsonKind::other},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0", JsonKind::job},
        {"<<<<<<< HEAD\n{}", JsonKind::job},
        {"{ // of an editor\n}", JsonKind::other},
        {R"({"model": {"type": "BPE"}, "messages": []})", JsonKind::other},
        {R"({"model_type": "llama", "hidden_size": 64})", JsonKind::model},
        {R"({"n_embd": 64})", JsonKind::model},
        {R"({"name": "package", "version": "1.0"})", JsonKind::other},
        {R"(["model", "mesh"])", JsonKind::other},
        {"", JsonKind::job},
        {"7", JsonKind::other},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text.data());
        CHECK(config::kind_of(row.text) == row.kind);
    }
}
