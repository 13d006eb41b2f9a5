// One small job per code and situation: cases/<code>-<what>.json and its line in cases.tsv.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "diag/codes.h"
#include "diagnostics/checked_job.h"

using namespace diagnostics_tests;

namespace {

const std::string cases = source_dir + "/tests/diagnostics/cases/";

std::string place_of(const diag::Diagnostic& diagnostic) {
    return diagnostic.span ? std::to_string(diagnostic.span->line) + ":" + std::to_string(diagnostic.span->column)
                           : "-";
}

bool contains(const std::string& text, const std::string& fragment) {
    return fragment == "-" || text.find(fragment) != std::string::npos;
}

/// Codes that only a run, or nothing that is known, can cause; with the test that covers them.
const std::map<std::string, std::string> covered_elsewhere = {
    {"SP6001", "tests/diagnostics/agreement_tests.cpp"},
    {"SP7001", "tests/config/checkpoint_tests.cpp"},
    {"SP7002", "tests/exec/run_tests.cpp"},
    {"SP7003", "tests/config/checkpoint_tests.cpp"},
};

}  // namespace

TEST_CASE("every case has its diagnostic, at its place, with its values") {
    std::set<std::string> listed;
    for (const auto& row : read_table("cases.tsv", 5)) {
        const std::string& name = row[0];
        CAPTURE(name);
        const std::string code = name.substr(0, name.find('-'));
        listed.insert(name + ".json");
        const CheckedJob result = check_file(cases + name + ".json");
        INFO(text_of(result.checked));
        bool found = false;
        for (const diag::Diagnostic& d : result.checked.all()) {
            found = found || (d.code == code && to_string(d.severity) == row[1] && place_of(d) == row[2] &&
                              contains(d.message, row[3]) && contains(d.hint, row[4]));
        }
        CHECK(found);
        if (diag::find_code(code)->severity == diag::Severity::error) {
            CHECK_FALSE(result.planned);
        } else {
            CHECK(result.planned);
        }
    }
    for (const auto& entry : std::filesystem::directory_iterator(cases)) {
        CAPTURE(entry.path().string());
        CHECK(listed.contains(entry.path().filename().string()));
    }
}

TEST_CASE("a case reports no other error than its own") {
    for (const auto& row : read_table("cases.tsv", 5)) {
        const std::string code = row[0].substr(0, row[0].find('-'));
        const CheckedJob result = check_file(cases + row[0] + ".json");
        INFO(row[0] << text_of(result.checked));
        for (const diag::Diagnostic& d : result.checked.all()) {
            CHECK((d.severity != diag::Severity::error || d.code == code));
        }
    }
}

TEST_CASE("no code lacks a case") {
    std::set<std::string> codes;
    for (const auto& row : read_table("cases.tsv", 5)) {
        codes.insert(row[0].substr(0, row[0].find('-')));
    }
    for (const diag::CodeInfo& info : diag::all_codes()) {
        const std::string code(info.code);
        CAPTURE(code);
        const auto elsewhere = covered_elsewhere.find(code);
        if (elsewhere == covered_elsewhere.end()) {
            CHECK(codes.contains(code));
        } else {
            CHECK_FALSE(codes.contains(code));
            CHECK(read_text(source_dir + "/" + elsewhere->second).find(code) != std::string::npos);
        }
    }
    for (const std::string& code : codes) {
        CHECK(diag::find_code(code) != nullptr);
    }
}

TEST_CASE("every error and warning says what would work") {
    for (const auto& row : read_table("cases.tsv", 5)) {
        const CheckedJob result = check_file(cases + row[0] + ".json");
        for (const diag::Diagnostic& d : result.checked.all()) {
            CAPTURE(d.message);
            const bool of_the_plan = d.code >= "SP3" && d.severity != diag::Severity::note;
            CHECK((!of_the_plan || !d.hint.empty()));
            CHECK(d.span.has_value());
        }
    }
}
