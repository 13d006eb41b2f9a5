// docs/diagnostics.md is generated from the table of codes; SHARDPLAN_UPDATE_DOCS=1 (scripts/generate_diagnostics)
// writes it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "diag/codes.h"
#include "diagnostics/table.h"

using namespace shardplan;
using namespace diagnostics_tests;

namespace {

const char* area_of(char digit) {
    switch (digit) {
        case '1': return "The file";
        case '2': return "The model";
        case '3': return "The mesh";
        case '4': return "Partitioning";
        case '5': return "The backend";
        case '6': return "The plan";
        default: return "Running";
    }
}

/// The first case of each code, as an example.
std::map<std::string, std::vector<std::string>> examples() {
    std::map<std::string, std::vector<std::string>> result;
    for (const auto& row : read_table("cases.tsv", 5)) {
        result.emplace(row[0].substr(0, row[0].find('-')), row);
    }
    return result;
}

std::string document() {
    std::string text =
        "# Diagnostics\n\n"
        "Generated from lib/diag/codes_table.h by scripts/generate_diagnostics; do not edit.\n\n"
        "Every problem has a stable code. Errors stop `plan`, `run` and `validate`; warnings and notes do not (but "
        "see\n"
        "`validate --strict` and `--warn CODE=off|warning|error`). `shardplan validate --explain CODE` prints one "
        "entry.\n";
    const auto cases = examples();
    char area = '0';
    for (const diag::CodeInfo& row : diag::all_codes()) {
        if (row.code[2] != area) {
            area = row.code[2];
            text += fmt::format("\n## {}\n", area_of(area));
        }
        text +=
            fmt::format("\n### {}: {} ({})\n\n{}\n\n", row.code, row.title, to_string(row.severity), row.explanation);
        text += fmt::format("What to do: {}\n", row.hint);
        if (!row.source.empty()) {
            text += fmt::format("\nFrom: {}.\n", row.source);
        }
        const auto example = cases.find(std::string(row.code));
        if (example != cases.end()) {
            text += fmt::format("\nExample: [{0}](../tests/diagnostics/cases/{0}.json)\n", example->second[0]);
        }
    }
    return text;
}

}  // namespace

TEST_CASE("docs/diagnostics.md is what the table says") {
    const std::string path = source_dir + "/docs/diagnostics.md";
    if (std::getenv("SHARDPLAN_UPDATE_DOCS") != nullptr) {
        std::ofstream(path) << document();
    }
    CHECK_MESSAGE(read_text(path) == document(), "run scripts/generate_diagnostics");
}

TEST_CASE("every row explains itself in whole sentences") {
    for (const diag::CodeInfo& row : diag::all_codes()) {
        CAPTURE(row.code);
        CHECK(row.explanation.size() >= 60);
        CHECK(row.explanation.ends_with('.'));
        CHECK(row.hint.size() >= 20);
        CHECK(row.hint.ends_with('.'));
        CHECK_FALSE(row.source.ends_with('.'));
    }
}
