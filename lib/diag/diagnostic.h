// Diagnostics are data: what was found, where, and what would work. The library never prints and never exits;
// apps and report decide how to show them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::diag {

enum class Severity { error, warning, note };

std::string_view to_string(Severity severity);

/// A place in a text file; lines and columns are 1-based, columns count code points; the end is exclusive.
struct SourceSpan {
    std::string file;
    int line = 0;
    int column = 0;
    int end_line = 0;
    int end_column = 0;
};

struct Diagnostic {
    std::string code;  ///< stable, "SP1203"; a row of diag/codes.h
    Severity severity = Severity::error;
    std::string message;  ///< states the rule and the value
    std::string pointer;  ///< JSON pointer (RFC 6901) into the job, "" for the whole document
    std::string hint;     ///< what would work; may be empty
    std::optional<SourceSpan> span;
};

/// Collects diagnostics in the order found.
class Diagnostics {
public:
    void add(Diagnostic diagnostic);

    /// Adds a diagnostic with the severity its code has in the table of codes.
    void report(std::string_view code, std::string message, std::string pointer = "", std::string hint = "");

    const std::vector<Diagnostic>& all() const { return all_; }
    std::vector<Diagnostic>& all() { return all_; }
    std::size_t error_count() const;
    bool has_errors() const { return error_count() > 0; }

private:
    std::vector<Diagnostic> all_;
};

/// Escapes one reference token of a JSON pointer ("~" and "/").
std::string escape_pointer(std::string_view token);

}  // namespace shardplan::diag
