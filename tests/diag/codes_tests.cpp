#include "diag/codes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

using namespace shardplan::diag;

TEST_CASE("codes are sorted and unique") {
    const auto table = all_codes();
    REQUIRE(table.size() > 20);
    for (std::size_t i = 1; i < table.size(); ++i) {
        CAPTURE(table[i].code);
        CHECK(table[i - 1].code < table[i].code);
    }
}

TEST_CASE("every code is SP, the digit of its area and three digits, and is explained") {
    std::set<std::string> titles;
    for (const CodeInfo& row : all_codes()) {
        CAPTURE(row.code);
        REQUIRE(row.code.size() == 6);
        CHECK(row.code.starts_with("SP"));
        CHECK(row.code[2] >= '1');
        CHECK(row.code[2] <= '7');
        CHECK(std::all_of(row.code.begin() + 2, row.code.end(), [](unsigned char c) { return std::isdigit(c) != 0; }));
        CHECK_FALSE(row.title.empty());
        CHECK_FALSE(row.title.ends_with('.'));
        CHECK(row.explanation.ends_with('.'));
        CHECK(titles.insert(std::string(row.title)).second);
    }
}

TEST_CASE("find_code finds every code and nothing else") {
    for (const CodeInfo& row : all_codes()) {
        CHECK(find_code(row.code) == &row);
    }
    for (const char* unknown : {"", "SP", "SP0000", "SP9999", "sp3001", "SP3001 ", "SP30010"}) {
        CAPTURE(unknown);
        CHECK(find_code(unknown) == nullptr);
    }
}

TEST_CASE("what stops a job is an error, what changes it a warning, what explains it a note") {
    struct Row {
        const char* code;
        Severity severity;
    };
    const Row rows[] = {
        {"SP1002", Severity::error}, {"SP3001", Severity::error},   {"SP3002", Severity::error},
        {"SP4003", Severity::error}, {"SP4004", Severity::warning}, {"SP4006", Severity::warning},
        {"SP2004", Severity::note},  {"SP5002", Severity::note},
    };
    for (const Row& row : rows) {
        CAPTURE(row.code);
        REQUIRE(find_code(row.code) != nullptr);
        CHECK(find_code(row.code)->severity == row.severity);
    }
}
