// What `validate` found in a number of files, and what its formats have in common: order, places and counts.
// Findings are ordered by file, line, code; one that several jobs share (a fault in the config of their model) counts
// once. Knows nothing of how files are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "report/diagnostics_text.h"

namespace shardplan::report {

struct CheckedFile {
    std::string name;
    std::vector<diag::Diagnostic> findings;
};

struct SkippedFile {
    std::string name;
    std::string reason;
};

struct CheckReport {
    std::vector<CheckedFile> files;
    std::vector<SkippedFile> skipped;  ///< found in a directory, but no jobs
    Sources sources;
    std::string root;     ///< absolute directory that machine formats name files relative to; "" = names stay
    bool strict = false;  ///< warnings fail too
};

struct Finding {
    const CheckedFile* file = nullptr;
    const diag::Diagnostic* diagnostic = nullptr;
};

/// Refers into `report`.
std::vector<Finding> sorted_findings(const CheckReport& report);

/// The same as values, in the same order.
std::vector<diag::Diagnostic> sorted_diagnostics(const CheckReport& report);

/// "12 files, 3 errors, 1 warning".
std::string check_summary(const CheckReport& report);

/// True for errors, and for warnings of a strict report.
bool fails(const CheckReport& report, const diag::Diagnostic& diagnostic);

/// `name` as machine formats name the file: normal, forward slashes, relative to `root` where it lies below.
std::string portable_name(std::string_view name, std::string_view root);

/// Where machine formats show a finding. What stands on the command line ("<--mesh>") has no place in a file: it is
/// shown at the start of the job that was checked.
diag::SourceSpan place_of(const Finding& finding, std::string_view root);

/// Diagnostics with source lines, then the summary.
void write_check_text(std::ostream& out, const CheckReport& report, const Style& style);

/// {schema_version, summary {files, errors, warnings, notes}, files [{file, errors, warnings}], skipped
/// [{file, reason}], diagnostics [...]}.
void write_check_json(std::ostream& out, const CheckReport& report);

}  // namespace shardplan::report
