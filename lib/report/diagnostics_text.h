// Diagnostics for people and for programs. The head line, "file:line:col: severity: message [CODE]", is what editors
// and problem matchers parse; below it the source line with a caret, and the hint. Knows nothing of plans.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "report/json_writer.h"
#include "report/style.h"

namespace shardplan::report {

/// File name as in the spans -> text of the file. Files that are missing are shown without source lines.
using Sources = std::map<std::string, std::string, std::less<>>;

void write_diagnostic_text(std::ostream& out, const diag::Diagnostic& diagnostic, const Sources& sources,
                           const Style& style);

/// All of them in their order, and the summary when there are any.
void write_diagnostics_text(std::ostream& out, const std::vector<diag::Diagnostic>& diagnostics, const Sources& sources,
                            const Style& style);

/// "2 errors, 1 warning"; "" for none.
std::string diagnostics_summary(const std::vector<diag::Diagnostic>& diagnostics);

/// "/mesh/axes/1" -> "mesh.axes[1]"; keys that are not words as ["a b"].
std::string pointer_text(std::string_view pointer);

/// Array of {code, severity, message, pointer, hint, file, line, column, end_line, end_column}; the last five are null
/// where no place is known.
void write_diagnostics_json(JsonWriter& json, std::string_view key, const std::vector<diag::Diagnostic>& diagnostics);

/// A document of its own: schema_version and diagnostics.
void write_diagnostics_json(std::ostream& out, const std::vector<diag::Diagnostic>& diagnostics);

}  // namespace shardplan::report
