#include "report/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "base/hash.h"
#include "diag/codes.h"
#include "report/escapes.h"

namespace shardplan::report {
namespace {

using diag::CodeInfo;
using diag::Diagnostic;

void text_field(JsonWriter& json, std::string_view key, std::string_view text) {
    json.object(
        key, [&] { json.field("text", text); }, JsonLayout::one_line);
}

void write_rule(JsonWriter& json, const CodeInfo& info) {
    json.object([&] {
        json.field("id", info.code);
        json.field("name", info.title);
        text_field(json, "shortDescription", info.title);
        text_field(json, "fullDescription", info.explanation);
        text_field(json, "help", info.hint);
        json.object(
            "defaultConfiguration", [&] { json.field("level", diag::to_string(info.severity)); }, JsonLayout::one_line);
    });
}

void write_driver(JsonWriter& json, std::string_view tool_version) {
    json.object("tool", [&] {
        json.object("driver", [&] {
            json.field("name", "shardplan");
            json.field("version", tool_version);
            json.field("semanticVersion", tool_version);
            json.array("rules", diag::all_codes(), [&](const CodeInfo& info) { write_rule(json, info); });
        });
    });
}

void write_location(JsonWriter& json, const Diagnostic& diagnostic, const diag::SourceSpan& place) {
    json.object([&] {
        json.object("physicalLocation", [&] {
            json.object(
                "artifactLocation", [&] { json.field("uri", uri_reference(place.file)); }, JsonLayout::one_line);
            json.object(
                "region",
                [&] {
                    json.field("startLine", place.line);
                    json.field("startColumn", place.column);
                    json.field("endLine", place.end_line);
                    json.field("endColumn", place.end_column);
                },
                JsonLayout::one_line);
        });
        if (!diagnostic.pointer.empty()) {
            json.array("logicalLocations", std::initializer_list<std::string_view>{diagnostic.pointer},
                       [&](std::string_view pointer) {
                           json.object([&] { json.field("fullyQualifiedName", pointer); }, JsonLayout::one_line);
                       });
        }
    });
}

class Results {
public:
    Results(JsonWriter& json, std::string_view root) : json_(json), root_(root) {}

    void write(const Finding& finding) {
        const Diagnostic& diagnostic = *finding.diagnostic;
        const diag::SourceSpan place = place_of(finding, root_);
        json_.object([&] {
            json_.field("ruleId", diagnostic.code);
            if (const CodeInfo* info = diag::find_code(diagnostic.code)) {
                json_.field("ruleIndex", info - diag::all_codes().data());
            }
            json_.field("level", diag::to_string(diagnostic.severity));
            text_field(json_, "message",
                       diagnostic.hint.empty() ? diagnostic.message
                                               : fmt::format("{}\nhint: {}", diagnostic.message, diagnostic.hint));
            json_.array("locations", std::initializer_list<int>{0},
                        [&](int) { write_location(json_, diagnostic, place); });
            json_.object(
                "partialFingerprints",
                [&] { json_.field("shardplanCodeAndPointer/v1", fingerprint(diagnostic, place.file)); },
                JsonLayout::one_line);
        });
    }

private:
    /// Code and pointer; the second finding of both in one file ends in ":2".
    std::string fingerprint(const Diagnostic& diagnostic, const std::string& file) {
        const std::string identity =
            fmt::format("{:016x}", base::fnv1a(diagnostic.pointer, base::fnv1a(diagnostic.code)));
        return fmt::format("{}:{}", identity, ++seen_[{file, identity}]);
    }

    JsonWriter& json_;
    std::string_view root_;
    std::map<std::pair<std::string, std::string>, int> seen_;
};

}  // namespace

void write_check_sarif(std::ostream& out, const CheckReport& report, std::string_view tool_version) {
    JsonWriter json(out);
    json.object([&] {
        json.field("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
        json.field("version", "2.1.0");
        json.array("runs", std::initializer_list<int>{0}, [&](int) {
            json.object([&] {
                write_driver(json, tool_version);
                json.field("columnKind", "unicodeCodePoints");
                Results results(json, report.root);
                json.array("results", sorted_findings(report), [&](const Finding& f) { results.write(f); });
            });
        });
    });
}

}  // namespace shardplan::report
