#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <tuple>

#include "report/schema_version.h"

namespace shardplan::report {
namespace {

using diag::Diagnostic;
using diag::Severity;

/// What two equal findings have in common; the order of reports.
auto key_of(const Finding& finding) {
    const Diagnostic& d = *finding.diagnostic;
    const bool placed = d.span.has_value();
    return std::make_tuple(std::string_view(placed ? d.span->file : finding.file->name), placed ? d.span->line : 0,
                           std::string_view(d.code), placed ? d.span->column : 0, std::string_view(d.message),
                           std::string_view(d.pointer));
}

std::int64_t count_of(const std::vector<Diagnostic>& diagnostics, Severity severity) {
    return std::count_if(diagnostics.begin(), diagnostics.end(),
                         [&](const Diagnostic& d) { return d.severity == severity; });
}

}  // namespace

std::vector<Finding> sorted_findings(const CheckReport& report) {
    std::vector<Finding> findings;
    for (const CheckedFile& file : report.files) {
        for (const Diagnostic& diagnostic : file.findings) {
            findings.push_back({&file, &diagnostic});
        }
    }
    const auto less = [](const Finding& a, const Finding& b) { return key_of(a) < key_of(b); };
    const auto equal = [](const Finding& a, const Finding& b) { return key_of(a) == key_of(b); };
    std::stable_sort(findings.begin(), findings.end(), less);
    findings.erase(std::unique(findings.begin(), findings.end(), equal), findings.end());
    return findings;
}

std::vector<Diagnostic> sorted_diagnostics(const CheckReport& report) {
    std::vector<Diagnostic> result;
    for (const Finding& finding : sorted_findings(report)) {
        result.push_back(*finding.diagnostic);
    }
    return result;
}

std::string check_summary(const CheckReport& report) {
    const std::string found = diagnostics_summary(sorted_diagnostics(report));
    return fmt::format("{} file{}, {}", report.files.size(), report.files.size() == 1 ? "" : "s",
                       found.empty() ? "no problems" : found);
}

bool fails(const CheckReport& report, const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::error || (report.strict && diagnostic.severity == Severity::warning);
}

std::string portable_name(std::string_view name, std::string_view root) {
    std::filesystem::path path = std::filesystem::path(name).lexically_normal();
    if (path.is_absolute() && !root.empty()) {
        const std::filesystem::path relative = path.lexically_relative(root);
        if (!relative.empty() && *relative.begin() != "..") {
            path = relative;
        }
    }
    return path.generic_string();
}

diag::SourceSpan place_of(const Finding& finding, std::string_view root) {
    diag::SourceSpan place{finding.file->name, 1, 1, 1, 1};
    const auto& span = finding.diagnostic->span;
    if (span && (!span->file.starts_with("<-") || span->file == finding.file->name)) {
        place = *span;
    }
    place.file = portable_name(place.file, root);
    return place;
}

void write_check_text(std::ostream& out, const CheckReport& report, const Style& style) {
    for (const Finding& finding : sorted_findings(report)) {
        write_diagnostic_text(out, *finding.diagnostic, report.sources, style);
    }
    out << check_summary(report) << '\n';
}

void write_check_json(std::ostream& out, const CheckReport& report) {
    const std::vector<Diagnostic> diagnostics = sorted_diagnostics(report);
    JsonWriter json(out);
    json.object([&] {
        json.field("schema_version", schema_version);
        json.object("summary", [&] {
            json.field("files", report.files.size());
            json.field("errors", count_of(diagnostics, Severity::error));
            json.field("warnings", count_of(diagnostics, Severity::warning));
            json.field("notes", count_of(diagnostics, Severity::note));
        });
        json.array("files", report.files, [&](const CheckedFile& file) {
            json.object(
                [&] {
                    json.field("file", file.name);
                    json.field("errors", count_of(file.findings, Severity::error));
                    json.field("warnings", count_of(file.findings, Severity::warning));
                },
                JsonLayout::one_line);
        });
        json.array("skipped", report.skipped, [&](const SkippedFile& file) {
            json.object(
                [&] {
                    json.field("file", file.name);
                    json.field("reason", file.reason);
                },
                JsonLayout::one_line);
        });
        write_diagnostics_json(json, "diagnostics", diagnostics);
    });
}

}  // namespace shardplan::report
