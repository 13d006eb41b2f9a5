#include "report/diagnostics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ostream>

#include "report/schema_version.h"
#include "report/text_width.h"
#include "report/utf8.h"

namespace shardplan::report {
namespace {

using diag::Diagnostic;
using diag::Severity;

Paint paint_of(Severity severity) {
    switch (severity) {
        case Severity::error: return Paint::error;
        case Severity::warning: return Paint::warning;
        case Severity::note: return Paint::note;
    }
    return Paint::error;
}

/// Line `number` (1-based) of `text`, without its end.
std::optional<std::string_view> line_of(std::string_view text, int number) {
    for (int line = 1; number >= 1; ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (line == number) {
            const std::string_view found = text.substr(0, end);
            return found.ends_with('\r') ? found.substr(0, found.size() - 1) : found;
        }
        if (end == text.size()) {
            break;
        }
        text.remove_prefix(end + 1);
    }
    return std::nullopt;
}

/// Bytes of the first `count` code points.
std::size_t bytes_of(std::string_view text, int count) {
    std::size_t bytes = 0;
    while (count-- > 0 && bytes < text.size()) {
        bytes += first_character(text.substr(bytes)).length;
    }
    return bytes;
}

/// The source line in three pieces: before, at and behind the span; long lines lose their far ends.
struct Excerpt {
    std::string before, at, behind;
};

/// At most `bytes` of the end, or of the beginning, of `text`; characters stay whole.
std::string_view tail_of(std::string_view text, std::size_t bytes) {
    text.remove_prefix(text.size() - std::min(bytes, text.size()));
    while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0U) == 0x80U) {
        text.remove_prefix(1);
    }
    return text;
}

std::string_view head_of(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) {
        return text;
    }
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) {
        --bytes;
    }
    return text.substr(0, bytes);
}

Excerpt excerpt_of(std::string_view line, const diag::SourceSpan& span, int width, std::string_view ellipsis) {
    std::string flat(line);
    std::replace(flat.begin(), flat.end(), '\t', ' ');
    const std::string_view text = flat;
    const std::size_t begin = bytes_of(text, std::max(span.column, 1) - 1);
    const bool one_line = span.end_line == span.line && span.end_column > span.column;
    const std::size_t end = one_line                    ? bytes_of(text, span.end_column - 1)
                            : span.end_line > span.line ? text.size()
                                                        : std::min(begin + 1, text.size());
    const std::size_t enough = 8 * static_cast<std::size_t>(width);  // more than fits, and folding it takes time
    Excerpt excerpt{printable(tail_of(text.substr(0, begin), enough)),
                    printable(head_of(text.substr(begin, end - begin), enough)),
                    printable(head_of(text.substr(end), enough))};
    while (display_width(excerpt.before) > width / 2) {
        excerpt.before = fmt::format("{}{}", ellipsis, wrap(excerpt.before, width / 2 - 3).back());
    }
    const int left = width - display_width(excerpt.before);
    if (display_width(excerpt.at) > left) {
        excerpt.at = std::string(fitting_head(excerpt.at, left - 3)) + std::string(ellipsis);
        excerpt.behind.clear();
    }
    if (display_width(excerpt.behind) > left - display_width(excerpt.at)) {
        const int room = std::max(left - display_width(excerpt.at) - 3, 0);
        excerpt.behind = std::string(fitting_head(excerpt.behind, room)) + std::string(ellipsis);
    }
    return excerpt;
}

void write_source(std::ostream& out, const diag::SourceSpan& span, std::string_view line, Paint look,
                  const Style& style) {
    const std::string gutter = fmt::format("{:>5} | ", span.line);
    const Excerpt excerpt =
        excerpt_of(line, span, std::max(style.width - display_width(gutter), 20), marks(style).ellipsis);
    const std::string source =
        fmt::format("{}{}{}{}", gutter, excerpt.before, paint(style, look, excerpt.at), excerpt.behind);
    out << std::string_view(source).substr(0, source.find_last_not_of(' ') + 1) << '\n';
    const std::string caret = "^" + repeat("~", display_width(excerpt.at) - 1);
    out << "      | " << repeat(" ", display_width(excerpt.before)) << paint(style, look, caret) << '\n';
}

bool is_word(std::string_view token) {
    return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
}

bool is_index(std::string_view token) {
    return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string unescaped(std::string_view token) {
    std::string result;
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] == '~' && i + 1 < token.size()) {
            result += token[++i] == '1' ? '/' : '~';
        } else {
            result += token[i];
        }
    }
    return result;
}

}  // namespace

std::string pointer_text(std::string_view pointer) {
    std::string result;
    while (!pointer.empty()) {
        pointer.remove_prefix(1);
        const std::size_t end = std::min(pointer.find('/'), pointer.size());
        const std::string token = unescaped(pointer.substr(0, end));
        if (is_index(token)) {
            result += fmt::format("[{}]", token);
        } else if (is_word(token)) {
            result += (result.empty() ? "" : ".") + token;
        } else {
            result += fmt::format("[\"{}\"]", printable(token));
        }
        pointer.remove_prefix(end);
    }
    return result;
}

void write_diagnostic_text(std::ostream& out, const Diagnostic& diagnostic, const Sources& sources,
                           const Style& style) {
    const auto& span = diagnostic.span;
    if (span) {
        out << printable(span->file) << ':' << span->line << ':' << span->column << ": ";
    }
    const Paint look = paint_of(diagnostic.severity);
    out << paint(style, look, diag::to_string(diagnostic.severity)) << ": " << printable(diagnostic.message) << " ["
        << diagnostic.code << "]\n";
    if (!span && !diagnostic.pointer.empty()) {
        out << "  at " << pointer_text(diagnostic.pointer) << '\n';
    }
    if (span) {
        const auto source = sources.find(span->file);
        const auto line = source == sources.end() ? std::nullopt : line_of(source->second, span->line);
        constexpr std::size_t longest_line = std::size_t{1} << 17;  // a longer one tells nobody anything
        if (line && line->size() <= longest_line) {
            write_source(out, *span, *line, look, style);
        }
    }
    if (!diagnostic.hint.empty()) {
        out << paint(style, Paint::note, "hint") << ": " << printable(diagnostic.hint) << '\n';
    }
}

std::string diagnostics_summary(const std::vector<Diagnostic>& diagnostics) {
    std::string result;
    for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
        const auto count = std::count_if(diagnostics.begin(), diagnostics.end(),
                                         [&](const Diagnostic& d) { return d.severity == severity; });
        if (count > 0) {
            result += fmt::format("{}{} {}{}", result.empty() ? "" : ", ", count, diag::to_string(severity),
                                  count == 1 ? "" : "s");
        }
    }
    return result;
}

void write_diagnostics_text(std::ostream& out, const std::vector<Diagnostic>& diagnostics, const Sources& sources,
                            const Style& style) {
    for (const Diagnostic& diagnostic : diagnostics) {
        write_diagnostic_text(out, diagnostic, sources, style);
    }
    if (!diagnostics.empty()) {
        out << diagnostics_summary(diagnostics) << '\n';
    }
}

void write_diagnostics_json(JsonWriter& json, std::string_view key, const std::vector<Diagnostic>& diagnostics) {
    json.array(key, diagnostics, [&](const Diagnostic& diagnostic) {
        json.object([&] {
            json.field("code", diagnostic.code);
            json.field("severity", diag::to_string(diagnostic.severity));
            json.field("message", diagnostic.message);
            json.field("pointer", diagnostic.pointer);
            json.field("hint", diagnostic.hint);
            if (diagnostic.span) {
                json.field("file", diagnostic.span->file);
                json.field("line", diagnostic.span->line);
                json.field("column", diagnostic.span->column);
                json.field("end_line", diagnostic.span->end_line);
                json.field("end_column", diagnostic.span->end_column);
                return;
            }
            for (const std::string_view name : {"file", "line", "column", "end_line", "end_column"}) {
                json.field(name, nullptr);
            }
        });
    });
}

void write_diagnostics_json(std::ostream& out, const std::vector<Diagnostic>& diagnostics) {
    JsonWriter json(out);
    json.object([&] {
        json.field("schema_version", schema_version);
        write_diagnostics_json(json, "diagnostics", diagnostics);
    });
}

}  // namespace shardplan::report
