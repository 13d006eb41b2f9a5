#include "config/document.h"

#include <algorithm>
#include <utility>

namespace shardplan::config {
namespace {

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

struct LineColumn {
    int line = 1;
    int column = 1;
};

/// Lines and columns of offsets that are asked for in ascending order: one pass over the text.
class Positions {
public:
    explicit Positions(std::string_view text) : text_(text) {}

    LineColumn at(std::size_t offset) {
        for (const std::size_t end = std::min(offset, text_.size()); next_ < end; ++next_) {
            if (text_[next_] == '\n') {
                ++here_.line;
                here_.column = 1;
            } else if (!is_continuation(text_[next_])) {
                ++here_.column;
            }
        }
        return here_;
    }

private:
    std::string_view text_;
    std::size_t next_ = 0;
    LineColumn here_;
};

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
    Positions positions(source.text);
    const LineColumn begin = positions.at(range.begin);
    const LineColumn end = positions.at(range.end);
    return {source.name, begin.line, begin.column, end.line, end.column};
}

Document::Place Document::place(std::string_view pointer) const {
    bool exact = false;
    const Location* location = nearest(*this, pointer, exact);
    if (location == nullptr) {
        return {};
    }
    TextRange range = location->value;
    if (!exact || pointer.empty()) {
        range.end = std::min(range.end, range.begin + 1);
    }
    return {location->source, range};
}

Document::Place Document::key_place(std::string_view pointer) const {
    const auto it = locations.find(std::string(pointer));
    if (it == locations.end() || it->second.key.begin == it->second.key.end) {
        return place(pointer);
    }
    return {it->second.source, it->second.key};
}

diag::SourceSpan Document::span(std::string_view pointer) const {
    const Place found = place(pointer);
    return span_of(sources[found.source], found.range);
}

diag::SourceSpan Document::key_span(std::string_view pointer) const {
    const Place found = key_place(pointer);
    return span_of(sources[found.source], found.range);
}

void attach_spans(diag::Diagnostics& diagnostics, const Document& document) {
    struct Wanted {
        Document::Place place;
        diag::Diagnostic* diagnostic;
    };
    std::vector<Wanted> wanted;
    for (diag::Diagnostic& diagnostic : diagnostics.all()) {
        if (!diagnostic.span) {
            const bool about_key = diagnostic.code == "SP1004";
            wanted.push_back(
                {about_key ? document.key_place(diagnostic.pointer) : document.place(diagnostic.pointer), &diagnostic});
        }
    }
    const auto sweep = [&](auto offset, auto store) {
        std::sort(wanted.begin(), wanted.end(), [&](const Wanted& a, const Wanted& b) {
            return std::pair(a.place.source, a.place.range.*offset) < std::pair(b.place.source, b.place.range.*offset);
        });
        std::optional<Positions> positions;
        std::size_t source = 0;
        for (const Wanted& one : wanted) {
            if (!positions || one.place.source != source) {
                source = one.place.source;
                positions.emplace(document.sources[source].text);
            }
            store(*one.diagnostic, document.sources[source].name, positions->at(one.place.range.*offset));
        }
    };
    sweep(&TextRange::begin, [](diag::Diagnostic& diagnostic, const std::string& file, LineColumn at) {
        diagnostic.span = diag::SourceSpan{file, at.line, at.column, at.line, at.column};
    });
    sweep(&TextRange::end, [](diag::Diagnostic& diagnostic, const std::string& /*file*/, LineColumn at) {
        diagnostic.span->end_line = at.line;
        diagnostic.span->end_column = at.column;
    });
}

}  // namespace shardplan::config
