// Rules of users: the first match wins, no pattern can crash or stall, and patterns that may tell layers apart are
// known.
#include "partition/rules.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "partition/layer_patterns.h"

using namespace shardplan;
using namespace shardplan::partition;

namespace {

std::optional<RuleTable> compile(const std::vector<std::string>& patterns, diag::Diagnostics& diagnostics) {
    std::vector<ParameterRule> rules;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        rules.push_back({patterns[i], {{{"tp"}}}, "/partition_rules/" + std::to_string(i)});
    }
    return RuleTable::compile(rules, diagnostics);
}

int matched(const RuleTable& table, std::string_view name) {
    const auto match = table.match(name);
    return match ? match->index : -1;
}

}  // namespace

TEST_CASE("the first rule that is found anywhere in the name wins") {
    diag::Diagnostics diagnostics;
    const auto table = compile({"^lm_head", "q_proj\\.weight$", "self_attn", "(up|gate)_proj", "bias"}, diagnostics);
    REQUIRE(table);
    CHECK(matched(*table, "lm_head.weight") == 0);
    CHECK(matched(*table, "model.lm_head.weight") == -1);
    CHECK(matched(*table, "model.layers.0.self_attn.q_proj.weight") == 1);
    CHECK(matched(*table, "model.layers.0.self_attn.q_proj.bias") == 2);
    CHECK(matched(*table, "model.layers.0.mlp.gate_proj.bias") == 3);
    CHECK(matched(*table, "model.norm.weight") == -1);
    CHECK(diagnostics.all().empty());
}

TEST_CASE("every bad pattern is reported where it stands") {
    struct Row {
        std::string pattern;
        const char* text;
    };
    const Row rows[] = {
        {"(a", "not a regular expression"},
        {"a)(b", "not a regular expression"},
        {"[z-a]", "not a regular expression"},
        {"*", "not a regular expression"},
        {"(a)\\1", "back-reference"},
        {"", "is empty"},
        {std::string(513, 'a'), "513 characters, more than the 512 allowed"},
    };
    std::vector<std::string> patterns = {"fine"};
    for (const Row& row : rows) {
        patterns.push_back(row.pattern);
    }
    diag::Diagnostics diagnostics;
    CHECK_FALSE(compile(patterns, diagnostics));
    REQUIRE(diagnostics.all().size() == std::size(rows));
    for (std::size_t i = 0; i < std::size(rows); ++i) {
        const diag::Diagnostic& found = diagnostics.all()[i];
        CAPTURE(found.message);
        CHECK(found.code == "SP4005");
        CHECK(found.pointer == "/partition_rules/" + std::to_string(i + 1));
        CHECK(found.message.find(rows[i].text) != std::string::npos);
        CHECK_FALSE(found.hint.empty());
    }
}

TEST_CASE("patterns that backtracking would not finish") {
    diag::Diagnostics diagnostics;
    const auto table = compile({"(a+)+b", "(a|a)*c", "((a*)*)*d", "(.*)*(.*)*e"}, diagnostics);
    REQUIRE(table);
    CHECK(matched(*table, std::string(1000, 'a')) == -1);
    CHECK(matched(*table, std::string(1000, 'a') + "c") == 1);
    CHECK(matched(*table, std::string(RuleTable::longest_name + 1, 'e')) == -1);
}

TEST_CASE("which patterns may tell layers apart") {
    const char* may[] = {
        "layers.3",        "layers\\.1[0-9]\\.", "layers/(0|1)/",   "h\\.\\d+\\.attn",      "layers/./mlp",
        "layers\\.(.)\\.", "layers\\.\\w\\.mlp", "h\\.[^2]+",       "layers\\..{2}\\.attn", "^model.layers.7.",
        "s\\.[[:digit:]]", "layers...mlp",       "layers\\.[^.]\\."};
    const char* may_not[] = {"mlp.fc1.weight",           "dense_h_to_4h",
                             "q_proj\\.weight$",         ".*",
                             "attn/(q|k|v)_proj/kernel", "ln_1",
                             "layers\\..*\\.mlp",        "layers\\.[^.]+\\.mlp",
                             "self_attn.q_proj",         "model\\.layers\\.\\w+\\.mlp\\.w2"};
    for (const char* pattern : may) {
        CAPTURE(pattern);
        CHECK(may_tell_layers_apart(pattern));
        diag::Diagnostics diagnostics;
        const auto table = compile({"x", pattern}, diagnostics);
        REQUIRE(table);
        CHECK(table->depends_on_layer());
    }
    for (const char* pattern : may_not) {
        CAPTURE(pattern);
        CHECK_FALSE(may_tell_layers_apart(pattern));
    }
}
