// The formats of `validate`: what each holds, checked on one report with names and messages that need every escape.
#include "report/findings.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "diag/codes.h"
#include "report/code_text.h"
#include "report/github_format.h"
#include "report/junit.h"
#include "report/sarif.h"

using namespace shardplan;
using namespace shardplan::report;
using diag::Diagnostic;
using diag::Severity;
using diag::SourceSpan;

namespace {

Diagnostic error_at(const std::string& file, int line, int column) {
    return {"SP4003",       Severity::error, "30 is not a multiple of 4",
            "/model/heads", "use 28",        SourceSpan{file, line, column, line, column + 2}};
}

Diagnostic warning_at(const std::string& file, int line) {
    return {"SP4004",
            Severity::warning,
            "100%: \"a\", <b> & c\x1b\xff",
            "/mesh/a~1b",
            "",
            SourceSpan{file, line, 3, line + 1, 1}};
}

CheckReport sample() {
    CheckReport report;
    report.root = "/repo";
    report.files.push_back(
        {"/repo/b c.json",
         {error_at("/repo/b c.json", 7, 2), error_at("/repo/b c.json", 7, 9), warning_at("/repo/b c.json", 2)}});
    report.files.push_back({"./a,1:%.json", {error_at("model.json", 1, 1)}});
    report.files.push_back({"d.json", {error_at("model.json", 1, 1), error_at("<--mesh>", 1, 1)}});
    report.files.push_back({"fine.json", {}});
    report.skipped.push_back({"package.json", "not a job"});
    return report;
}

template <typename Write>
std::string written(const Write& write) {
    std::ostringstream out;
    write(out);
    return out.str();
}

}  // namespace

TEST_CASE("findings are ordered by file, line, code; shared ones count once") {
    const CheckReport report = sample();
    std::vector<std::string> order;
    for (const Finding& finding : sorted_findings(report)) {
        order.push_back(fmt::format("{}:{} {}", finding.diagnostic->span->file, finding.diagnostic->span->line,
                                    finding.diagnostic->code));
    }
    CHECK(order == std::vector<std::string>{"/repo/b c.json:2 SP4004", "/repo/b c.json:7 SP4003",
                                            "/repo/b c.json:7 SP4003", "<--mesh>:1 SP4003", "model.json:1 SP4003"});
    CHECK(check_summary(report) == "4 files, 4 errors, 1 warning");
    CHECK(check_summary({{{"a", {}}}, {}, {}, "", false}) == "1 file, no problems");
    CHECK(check_summary({}) == "0 files, no problems");
}

TEST_CASE("names of files in machine formats") {
    CHECK(portable_name("/repo/x/../y.json", "/repo") == "y.json");
    CHECK(portable_name("./y.json", "/repo") == "y.json");
    CHECK(portable_name("/elsewhere/y.json", "/repo") == "/elsewhere/y.json");
    CHECK(portable_name("/repository/y.json", "/repo") == "/repository/y.json");
    CHECK(portable_name("../y.json", "/repo") == "../y.json");
    CHECK(portable_name("/repo/y.json", "") == "/repo/y.json");
}

TEST_CASE("text: every finding, then the summary") {
    const CheckReport report = sample();
    const std::string text = written([&](std::ostream& out) { write_check_text(out, report, {}); });
    CHECK(text.starts_with("/repo/b c.json:2:3: warning: 100%: \"a\", <b> & c\\x1b\xef\xbf\xbd [SP4004]\n"));
    CHECK(text.find("<--mesh>:1:1: error: 30 is not a multiple of 4 [SP4003]\nhint: use 28\n") != std::string::npos);
    CHECK(text.ends_with("4 files, 4 errors, 1 warning\n"));
}

TEST_CASE("json: summary, files, skipped files and diagnostics") {
    const CheckReport report = sample();
    const auto json = nlohmann::json::parse(written([&](std::ostream& out) { write_check_json(out, report); }));
    CHECK(json.at("schema_version").is_string());
    CHECK(json.at("summary") == nlohmann::json{{"files", 4}, {"errors", 4}, {"warnings", 1}, {"notes", 0}});
    CHECK(json.at("files").at(0) == nlohmann::json{{"file", "/repo/b c.json"}, {"errors", 2}, {"warnings", 1}});
    CHECK(json.at("skipped").at(0).at("reason") == "not a job");
    CHECK(json.at("diagnostics").size() == 5);
    CHECK(json.at("diagnostics").at(0).at("message") == "100%: \"a\", <b> & c\x1b\xef\xbf\xbd");
}

TEST_CASE("github: one command a line, nothing in it can start another") {
    const CheckReport report = sample();
    const std::string text = written([&](std::ostream& out) { write_check_github(out, report); });
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    REQUIRE(lines.size() == 5);
    CHECK(lines[0] ==
          "::warning file=b c.json,line=2,endLine=3,col=3,title=SP4004 entry dropped::"
          "100%25: \"a\", <b> & c\\x1b\xef\xbf\xbd");
    CHECK(lines[1] ==
          "::error file=b c.json,line=7,endLine=7,col=2,endColumn=4,title=SP4003 not divisible::"
          "30 is not a multiple of 4%0Ahint: use 28");
    CHECK(lines[3].starts_with("::error file=d.json,line=1,"));  // <--mesh> is no file

    CheckReport named;
    named.files.push_back({"a,1:%\n.json", {}});
    named.files[0].findings.push_back(error_at(named.files[0].name, 1, 1));
    const std::string escaped = written([&](std::ostream& out) { write_check_github(out, named); });
    CHECK(escaped.starts_with("::error file=a%2C1%3A%25%0A.json,line=1,"));
}

TEST_CASE("sarif: rules from the table, results with places and fingerprints") {
    const CheckReport report = sample();
    const auto log =
        nlohmann::json::parse(written([&](std::ostream& out) { write_check_sarif(out, report, "1.2.3"); }));
    CHECK(log.at("version") == "2.1.0");
    CHECK(log.at("$schema").get<std::string>().find("sarif-2.1.0") != std::string::npos);
    REQUIRE(log.at("runs").size() == 1);
    const auto& run = log.at("runs").at(0);
    const auto& driver = run.at("tool").at("driver");
    CHECK(driver.at("name") == "shardplan");
    CHECK(driver.at("version") == "1.2.3");
    REQUIRE(driver.at("rules").size() == diag::all_codes().size());
    std::set<std::string> ids;
    for (const auto& rule : driver.at("rules")) {
        ids.insert(rule.at("id"));
        CHECK_FALSE(rule.at("shortDescription").at("text").get<std::string>().empty());
        CHECK_FALSE(rule.at("fullDescription").at("text").get<std::string>().empty());
        CHECK_FALSE(rule.at("help").at("text").get<std::string>().empty());
        const std::string level = rule.at("defaultConfiguration").at("level");
        CHECK((level == "error" || level == "warning" || level == "note"));
    }
    CHECK(ids.size() == diag::all_codes().size());
    CHECK(run.at("columnKind") == "unicodeCodePoints");

    const auto& results = run.at("results");
    REQUIRE(results.size() == 5);
    std::set<std::pair<std::string, std::string>> fingerprints;
    for (const auto& result : results) {
        const auto& rule = driver.at("rules").at(result.at("ruleIndex").get<std::size_t>());
        CHECK(rule.at("id") == result.at("ruleId"));
        const auto& physical = result.at("locations").at(0).at("physicalLocation");
        const std::string uri = physical.at("artifactLocation").at("uri");
        CHECK(uri.find_first_of(" <>\\%:") == uri.find("%20"));
        for (const auto& [name, value] : physical.at("region").items()) {
            CHECK(value.get<int>() >= 1);
        }
        fingerprints.insert({uri, result.at("partialFingerprints").begin().value()});
    }
    CHECK(fingerprints.size() == results.size());
    CHECK(results.at(0).at("level") == "warning");
    CHECK(results.at(0).at("locations").at(0).at("logicalLocations").at(0).at("fullyQualifiedName") == "/mesh/a~1b");
    CHECK(results.at(1).at("message").at("text") == "30 is not a multiple of 4\nhint: use 28");
    CHECK(results.at(1).at("locations").at(0).at("physicalLocation").at("artifactLocation").at("uri") == "b%20c.json");
}

TEST_CASE("sarif: a finding keeps its fingerprint when lines move") {
    const auto fingerprint = [](int line) {
        CheckReport report;
        report.files.push_back({"a.json", {error_at("a.json", line, 1)}});
        const auto log =
            nlohmann::json::parse(written([&](std::ostream& out) { write_check_sarif(out, report, "1"); }));
        return log.at("runs").at(0).at("results").at(0).at("partialFingerprints").dump();
    };
    CHECK(fingerprint(3) == fingerprint(30));
}

TEST_CASE("junit: a case per file, failures counted, warnings only when strict") {
    CheckReport report = sample();
    report.files.push_back({"w.json", {warning_at("w.json", 1)}});
    const auto xml = [&] { return written([&](std::ostream& out) { write_check_junit(out, report); }); };
    const std::string text = xml();
    CHECK(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
    CHECK(text.find("tests=\"5\" failures=\"3\"") != std::string::npos);
    CHECK(text.find("<testcase name=\"b c.json\" classname=\"shardplan.validate\" file=\"b c.json\">") !=
          std::string::npos);
    CHECK(text.find("<failure type=\"SP4003\" message=\"30 is not a multiple of 4\">") != std::string::npos);
    CHECK(text.find("<system-out>w.json:1:3: warning: 100%: \"a\", &lt;b&gt; &amp; c\\x1b") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    report.strict = true;
    CHECK(xml().find("tests=\"5\" failures=\"4\"") != std::string::npos);
}

TEST_CASE("what a code means") {
    for (const diag::CodeInfo& info : diag::all_codes()) {
        CAPTURE(std::string(info.code));
        const std::string text = written([&](std::ostream& out) { write_code_text(out, info, {}); });
        CHECK(text.starts_with(fmt::format("{}: {} ({})\n", info.code, info.title, diag::to_string(info.severity))));
        const auto json = nlohmann::json::parse(written([&](std::ostream& out) { write_code_json(out, info); }));
        CHECK(json.at("code") == info.code);
        CHECK(json.at("explanation") == info.explanation);
    }
}
