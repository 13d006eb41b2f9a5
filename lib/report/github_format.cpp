#include "report/github_format.h"

#include <fmt/format.h>

#include <ostream>

#include "diag/codes.h"
#include "report/escapes.h"

namespace shardplan::report {
namespace {

std::string_view command_of(diag::Severity severity) {
    switch (severity) {
        case diag::Severity::error: return "error";
        case diag::Severity::warning: return "warning";
        case diag::Severity::note: return "notice";
    }
    return "error";
}

}  // namespace

void write_check_github(std::ostream& out, const CheckReport& report) {
    for (const Finding& finding : sorted_findings(report)) {
        const diag::Diagnostic& diagnostic = *finding.diagnostic;
        const diag::SourceSpan place = place_of(finding, report.root);
        const diag::CodeInfo* info = diag::find_code(diagnostic.code);
        const std::string title =
            info == nullptr ? diagnostic.code : fmt::format("{} {}", diagnostic.code, info->title);
        const std::string text =
            diagnostic.hint.empty() ? diagnostic.message : diagnostic.message + "\nhint: " + diagnostic.hint;
        out << fmt::format("::{} file={},line={},endLine={},col={},", command_of(diagnostic.severity),
                           github_property(place.file), place.line, place.end_line, place.column);
        if (place.end_line == place.line) {  // columns of two lines cannot be shown
            out << fmt::format("endColumn={},", place.end_column);
        }
        out << fmt::format("title={}::{}\n", github_property(title), github_message(text));
    }
}

}  // namespace shardplan::report
