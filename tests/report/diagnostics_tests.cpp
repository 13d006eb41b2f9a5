#include "report/diagnostics_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/text_width.h"

using namespace shardplan;
using namespace shardplan::report;

namespace {

diag::Diagnostic at(int line, int column, int end_line, int end_column) {
    return {"SP4003",       diag::Severity::error, "30 is not a multiple of 4",
            "/model/heads", "use 28 or 32",        diag::SourceSpan{"job.json", line, column, end_line, end_column}};
}

std::string text_of(const diag::Diagnostic& diagnostic, const std::string& source, const Style& style = {}) {
    std::ostringstream out;
    write_diagnostic_text(out, diagnostic, {{"job.json", source}}, style);
    return out.str();
}

}  // namespace

TEST_CASE("a diagnostic with its place") {
    const std::string source = "{\n  \"model\": {\n    \"heads\": 30,\r\n    \"x\": 1\n  }\n}\n";
    CHECK(text_of(at(3, 14, 3, 16), source) ==
          "job.json:3:14: error: 30 is not a multiple of 4 [SP4003]\n"
          "    3 |     \"heads\": 30,\n"
          "      |              ^~\n"
          "hint: use 28 or 32\n");
}

TEST_CASE("carets stand below their characters") {
    CHECK(text_of(at(1, 8, 1, 10), "{\"\xc3\xa4\xe6\xbc\xa2\": 30}").find("\n      |         ^~\n") !=
          std::string::npos);
    CHECK(text_of(at(1, 3, 1, 5), "\t\t30").find("    1 |   30\n      |   ^~\n") != std::string::npos);
    CHECK(text_of(at(1, 1, 3, 2), "{\n}\n").find("    1 | {\n      | ^\n") != std::string::npos);
    CHECK(text_of(at(2, 1, 2, 1), "{\n").find("    2 |\n      | ^\n") != std::string::npos);  // end of the text
    CHECK(text_of(at(9, 1, 9, 2), "{\n").find(" | ") == std::string::npos);
}

TEST_CASE("long lines lose their far ends") {
    const std::string source = std::string(500, 'a') + "30" + std::string(500, 'b');
    const std::string text = text_of(at(1, 501, 1, 503), source, {false, false, 80});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        CHECK(display_width(line) <= 80);
    }
    CHECK(text.find("aa30bb") != std::string::npos);
    CHECK(text.find("…aaa") != std::string::npos);
    CHECK(text_of(at(1, 1, 1, 900), source, {false, true, 80}).find("a...\n") != std::string::npos);
}

TEST_CASE("characters of long lines stay whole, and lines without end are not shown") {
    std::string source;
    for (int i = 0; i < 3000; ++i) {
        source += "\xe2\x82\xac";
    }
    const std::string text = text_of(at(1, 1500, 1, 1502), source, {false, false, 80});
    CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
    CHECK(text.find("\xe2\x82\xac") != std::string::npos);
    CHECK(text_of(at(1, 5, 1, 6), std::string(200'000, 'a')).find("aaaa") == std::string::npos);
}

TEST_CASE("a diagnostic without a place") {
    diag::Diagnostic diagnostic{"SP4006", diag::Severity::warning, "bad\x1b\nname", "/mesh/axes/1", "", std::nullopt};
    CHECK(text_of(diagnostic, "") == "warning: bad\\x1b\\x0aname [SP4006]\n  at mesh.axes[1]\n");
    diagnostic.pointer = "";
    CHECK(text_of(diagnostic, "") == "warning: bad\\x1b\\x0aname [SP4006]\n");
    CHECK(text_of(diagnostic, "", {true, false, 120}).starts_with("\x1b[1;33mwarning\x1b[0m: "));
}

TEST_CASE("pointers for people") {
    CHECK(pointer_text("") == "");
    CHECK(pointer_text("/partition_axis/head_axis") == "partition_axis.head_axis");
    CHECK(pointer_text("/a/0/b") == "a[0].b");
    CHECK(pointer_text("/a~1b/c~0d/") == "[\"a/b\"][\"c~d\"][\"\"]");
}

TEST_CASE("a list ends with its summary") {
    std::vector<diag::Diagnostic> list{at(1, 1, 1, 2), at(1, 1, 1, 2)};
    list.push_back({"SP5002", diag::Severity::note, "local", "", "", std::nullopt});
    CHECK(diagnostics_summary(list) == "2 errors, 1 note");
    CHECK(diagnostics_summary({}) == "");
    std::ostringstream out;
    write_diagnostics_text(out, list, {}, {});
    CHECK(out.str().ends_with("note: local [SP5002]\n2 errors, 1 note\n"));
}

TEST_CASE("diagnostics as a document") {
    std::ostringstream out;
    write_diagnostics_json(out, {at(3, 14, 3, 16)});
    const auto doc = nlohmann::json::parse(out.str());
    CHECK(doc["schema_version"] == "1.0");
    CHECK(doc["diagnostics"][0] ==
          nlohmann::json::parse(R"({"code":"SP4003","severity":"error","message":"30 is not a multiple of 4",
            "pointer":"/model/heads","hint":"use 28 or 32","file":"job.json","line":3,"column":14,"end_line":3,
            "end_column":16})"));
}
