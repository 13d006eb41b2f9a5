// Where results and messages go: standard output or a file, standard error, with or without colour.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "arguments.h"
#include "config/document.h"
#include "diag/diagnostic.h"
#include "exit_code.h"
#include "report/diagnostics_text.h"
#include "report/style.h"

namespace shardplan::app {

enum class Stream : std::uint8_t { output, error, file };

/// NO_COLOR (not empty) switches off, FORCE_COLOR and CLICOLOR_FORCE on, --color outranks both; else colour on a
/// terminal that is not "dumb"; under mpirun no stream counts as a terminal.
report::Style style_for(const Arguments& arguments, Stream stream);

/// Throws UsageError when an output is the same file (by device and inode) as one of `inputs`, of which those that are
/// no files ("-", "<stdin>") do not count.
void refuse_overwriting(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

/// Files that the documents were read from.
std::vector<std::string> files_of(const std::vector<config::Document>& documents);

/// Calls `write` with standard output, or with a file beside `output.file` that is renamed when complete.
/// Throws UsageError when the file cannot be written.
void write_output(const Output& output, const std::function<void(std::ostream&)>& write);

/// The texts of the documents, for source lines under messages.
report::Sources sources_of(const std::vector<config::Document>& documents);

/// Diagnostics as text on standard error; notes are left out, with -q warnings too.
void print_diagnostics(const diag::Diagnostics& diagnostics, const std::vector<config::Document>& documents,
                       const Arguments& arguments);

/// 2 when something could not be read at all, 1 for any other error, else 0.
ExitCode code_for(const diag::Diagnostics& diagnostics);

/// Set by `run` for the ranks it starts when its own standard error is a terminal: theirs is a pipe to mpirun.
inline constexpr const char* progress_variable = "SHARDPLAN_PROGRESS";

/// True when standard error is a terminal, or that of the `run` that started this rank, and not a CI log.
bool shows_progress();

}  // namespace shardplan::app
