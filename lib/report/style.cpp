#include "report/style.h"

#include <fmt/format.h>

namespace shardplan::report {
namespace {

std::string_view colour_code(Paint paint) {
    switch (paint) {
        case Paint::plain: return "";
        case Paint::heading: return "1";
        case Paint::muted: return "2";
        case Paint::error: return "1;31";
        case Paint::warning: return "1;33";
        case Paint::note: return "36";
        case Paint::good: return "32";
        case Paint::moved: return "34";
    }
    return "";
}

constexpr Marks unicode_marks{"─", "│", "┼", "…", "→", "⇄", "█", "┌", "┬", "┐", "├", "┤", "└", "┴", "┘"};
constexpr Marks ascii_marks{"-", "|", "+", "...", "->", "*", "#", "+", "+", "+", "+", "+", "+", "+", "+"};

}  // namespace

std::string paint(const Style& style, Paint paint, std::string_view text) {
    const std::string_view code = colour_code(paint);
    if (!style.colour || code.empty() || text.empty()) {
        return std::string(text);
    }
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

const Marks& marks(const Style& style) {
    return style.ascii ? ascii_marks : unicode_marks;
}

}  // namespace shardplan::report
