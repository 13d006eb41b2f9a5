#include "report/boxes.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string_view>

#include "report/text_width.h"

namespace shardplan::report {
namespace {

void draw_rule(std::ostream& out, const Style& style, int indent, int columns, int width, std::string_view left,
               std::string_view middle, std::string_view right) {
    out << repeat(" ", indent) << left;
    for (int c = 0; c < columns; ++c) {
        out << (c == 0 ? "" : middle) << repeat(marks(style).horizontal, width);
    }
    out << right << '\n';
}

std::string centred(std::string_view text, int width) {
    const int before = std::max((width - display_width(text)) / 2, 0);
    return pad_right(repeat(" ", before) + std::string(text), width);
}

}  // namespace

int box_width(const BoxGrid& grid) {
    int width = 7;
    for (const std::vector<BoxText>& row : grid) {
        for (const BoxText& box : row) {
            for (const std::string& line : box) {
                width = std::max(width, display_width(line));
            }
        }
    }
    return width + 2;
}

int boxes_that_fit(const BoxGrid& grid, const Style& style, int indent) {
    return std::max((style.width - indent - 1) / (box_width(grid) + 1), 1);
}

void draw_boxes(std::ostream& out, const BoxGrid& grid, const Style& style, int indent) {
    if (grid.empty()) {
        return;
    }
    const Marks& m = marks(style);
    const int width = box_width(grid);
    const int columns = static_cast<int>(grid.front().size());
    for (std::size_t r = 0; r < grid.size(); ++r) {
        r == 0 ? draw_rule(out, style, indent, columns, width, m.top_left, m.top, m.top_right)
               : draw_rule(out, style, indent, columns, width, m.left, m.cross, m.right);
        std::size_t lines = 0;
        for (const BoxText& box : grid[r]) {
            lines = std::max(lines, box.size());
        }
        for (std::size_t line = 0; line < lines; ++line) {
            out << repeat(" ", indent) << m.vertical;
            for (const BoxText& box : grid[r]) {
                out << centred(line < box.size() ? box[line] : "", width) << m.vertical;
            }
            out << '\n';
        }
    }
    draw_rule(out, style, indent, columns, width, m.bottom_left, m.bottom, m.bottom_right);
}

}  // namespace shardplan::report
