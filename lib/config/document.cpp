#include "config/document.h"

#include <algorithm>

namespace shardplan::config {
namespace {

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

struct LineColumn {
    int line = 1;
    int column = 1;
};

LineColumn position_of(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const std::size_t newline = before.rfind('\n');
    const std::string_view line = newline == std::string_view::npos ? before : before.substr(newline + 1);
    const auto code_points = std::count_if(line.begin(), line.end(), [](char c) { return !is_continuation(c); });
    return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(code_points) + 1};
}

std::string_view parent(std::string_view pointer) {
    const std::size_t slash = pointer.rfind('/');
    return slash == std::string_view::npos ? "" : pointer.substr(0, slash);
}

/// The location of `pointer` or of the nearest value around it; `exact` tells which.
const Location* nearest(const Document& document, std::string_view pointer, bool& exact) {
    exact = true;
    while (true) {
        const auto it = document.locations.find(std::string(pointer));
        if (it != document.locations.end()) {
            return &it->second;
        }
        if (pointer.empty()) {
            return nullptr;
        }
        pointer = parent(pointer);
        exact = false;
    }
}

}  // namespace

diag::SourceSpan span_of(const Source& source, TextRange range) {
    const LineColumn begin = position_of(source.text, range.begin);
    const LineColumn end = position_of(source.text, range.end);
    return {source.name, begin.line, begin.column, end.line, end.column};
}

diag::SourceSpan Document::span(std::string_view pointer) const {
    bool exact = false;
    const Location* location = nearest(*this, pointer, exact);
    if (location == nullptr) {
        return {sources.empty() ? "" : sources.front().name, 1, 1, 1, 1};
    }
    TextRange range = location->value;
    if (!exact || pointer.empty()) {
        range.end = std::min(range.end, range.begin + 1);
    }
    return span_of(sources[location->source], range);
}

diag::SourceSpan Document::key_span(std::string_view pointer) const {
    const auto it = locations.find(std::string(pointer));
    if (it == locations.end() || it->second.key.begin == it->second.key.end) {
        return span(pointer);
    }
    return span_of(sources[it->second.source], it->second.key);
}

void attach_spans(diag::Diagnostics& diagnostics, const Document& document) {
    for (diag::Diagnostic& diagnostic : diagnostics.all()) {
        if (!diagnostic.span) {
            const bool about_key = diagnostic.code == "SP1004";
            diagnostic.span = about_key ? document.key_span(diagnostic.pointer) : document.span(diagnostic.pointer);
        }
    }
}

}  // namespace shardplan::config
