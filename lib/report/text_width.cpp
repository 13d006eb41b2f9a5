#include "report/text_width.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "report/utf8.h"

namespace shardplan::report {
namespace {

using CodeRange = std::pair<char32_t, char32_t>;

template <std::size_t n>
bool in_ranges(const std::array<CodeRange, n>& ranges, char32_t code) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const CodeRange& range) { return code >= range.first && code <= range.second; });
}

int character_width(char32_t code) {
    constexpr std::array<CodeRange, 5> no_width{
        {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}}};
    constexpr std::array<CodeRange, 9> wide{{{0x1100, 0x115f},
                                             {0x2e80, 0xa4cf},
                                             {0xac00, 0xd7a3},
                                             {0xf900, 0xfaff},
                                             {0xfe30, 0xfe6f},
                                             {0xff00, 0xff60},
                                             {0xffe0, 0xffe6},
                                             {0x1f300, 0x1faff},
                                             {0x20000, 0x3fffd}}};
    if (code < 0x300) {
        return 1;
    }
    return in_ranges(no_width, code) ? 0 : in_ranges(wide, code) ? 2 : 1;
}

/// Where to break within `head`, which is followed by more text: the number of bytes that stay on this line.
std::size_t break_position(std::string_view text, std::size_t head, std::size_t indent) {
    if (text[head] == ' ') {
        return head;
    }
    const std::size_t blank = text.substr(0, head).rfind(' ');
    if (blank != std::string_view::npos && blank > indent) {
        return blank;
    }
    const std::size_t mark = text.substr(0, head).find_last_of(",./:_-|)");
    return mark != std::string_view::npos && mark > indent ? mark + 1 : head;
}

}  // namespace

int display_width(std::string_view text) {
    int width = 0;
    while (!text.empty()) {
        const Character character = first_character(text);
        width += character_width(character.code);
        text.remove_prefix(character.length);
    }
    return width;
}

std::string_view fitting_head(std::string_view text, int width) {
    std::size_t bytes = 0;
    while (bytes < text.size()) {
        const Character character = first_character(text.substr(bytes));
        width -= character_width(character.code);
        if (width < 0) {
            break;
        }
        bytes += character.length;
    }
    return text.substr(0, bytes);
}

std::vector<std::string> wrap(std::string_view text, int width) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    const std::string indent(std::min(blanks, static_cast<std::size_t>(width / 2)), ' ');
    std::vector<std::string> lines;
    std::string rest = indent + std::string(text.substr(blanks));
    while (display_width(rest) > width) {
        std::size_t head = fitting_head(rest, width).size();
        if (head <= indent.size()) {
            head = indent.size() + first_character(std::string_view(rest).substr(indent.size())).length;
        }
        if (head >= rest.size()) {
            break;
        }
        const std::size_t end = break_position(rest, head, indent.size());
        lines.push_back(rest.substr(0, end));
        const std::size_t next = rest.find_first_not_of(' ', end);
        rest = next == std::string::npos ? "" : indent + rest.substr(next);
    }
    if (!rest.empty() || lines.empty()) {
        lines.push_back(std::move(rest));
    }
    return lines;
}

std::string pad_right(std::string_view text, int width) {
    return std::string(text) + repeat(" ", width - display_width(text));
}

std::string pad_left(std::string_view text, int width) {
    return repeat(" ", width - display_width(text)) + std::string(text);
}

std::string repeat(std::string_view piece, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) {
        result += piece;
    }
    return result;
}

}  // namespace shardplan::report
