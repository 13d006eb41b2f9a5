#include "report/table.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <ostream>
#include <string_view>

#include "report/text_width.h"
#include "report/utf8.h"

namespace shardplan::report {
namespace {

constexpr int gap = 2;

void print_line(std::ostream& out, const Style& style, Paint look, int indent, std::string_view text) {
    const std::size_t end = text.find_last_not_of(' ');
    if (end != std::string_view::npos) {
        out << repeat(" ", indent) << paint(style, look, text.substr(0, end + 1));
    }
    out << '\n';
}

int total(const std::vector<int>& widths) {
    return std::accumulate(widths.begin(), widths.end(), 0) + gap * (static_cast<int>(widths.size()) - 1);
}

}  // namespace

void Table::add_row(std::vector<std::string> cells, Paint paint) {
    for (std::string& cell : cells) {
        cell = printable(cell);
    }
    cells.resize(columns_.size());
    rows_.push_back({Kind::cells, std::move(cells), 0, paint});
}

void Table::add_heading(std::string text) {
    rows_.push_back({Kind::heading, {printable(text)}, 0, Paint::heading});
}

void Table::add_note(std::string text, int column, Paint paint) {
    rows_.push_back({Kind::note, {printable(text)}, column, paint});
}

int Table::cells_wider_than(std::size_t column, int width) const {
    return static_cast<int>(std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) {
        return row.kind == Kind::cells && display_width(row.cells[column]) > width;
    }));
}

std::vector<int> Table::widths(int available) const {
    std::vector<int> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        int width = display_width(columns_[c].title);
        for (const Row& row : rows_) {
            width = std::max(width, row.kind == Kind::cells ? display_width(row.cells[c]) : 0);
        }
        widths.push_back(width);
    }
    while (total(widths) > available) {
        std::size_t chosen = columns_.size();
        int fewest = 0;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].least == 0 || widths[c] <= columns_[c].least) {
                continue;
            }
            const int folded = cells_wider_than(c, widths[c] - 1);
            const bool better =
                chosen == columns_.size() || folded < fewest || (folded == fewest && widths[c] > widths[chosen]);
            if (better) {
                chosen = c;
                fewest = folded;
            }
        }
        if (chosen == columns_.size()) {
            break;
        }
        --widths[chosen];
    }
    return widths;
}

void Table::print_cells(std::ostream& out, const Style& style, const Row& row, const std::vector<int>& widths,
                        int indent) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        cells.push_back(wrap(row.cells[c], std::max(widths[c], 1)));
        lines = std::max(lines, cells.back().size());
    }
    for (std::size_t line = 0; line < lines; ++line) {
        std::string text;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const std::string cell = line < cells[c].size() ? cells[c][line] : "";
            text += (c == 0 ? "" : repeat(" ", gap));
            text += columns_[c].right ? pad_left(cell, widths[c]) : pad_right(cell, widths[c]);
        }
        print_line(out, style, row.paint, indent, text);
    }
}

void Table::print(std::ostream& out, const Style& style, int indent) const {
    const std::vector<int> widths = this->widths(style.width - indent);
    Row titles;
    titles.paint = Paint::heading;
    for (const Column& column : columns_) {
        titles.cells.push_back(column.title);
    }
    print_cells(out, style, titles, widths, indent);
    print_line(out, style, Paint::muted, indent, repeat(marks(style).horizontal, total(widths)));
    for (const Row& row : rows_) {
        if (row.kind == Kind::cells) {
            print_cells(out, style, row, widths, indent);
            continue;
        }
        const int start = std::accumulate(widths.begin(), widths.begin() + row.column, 0) + gap * row.column;
        const int width = std::max(style.width - indent - start, 20);
        for (const std::string& line : wrap(row.cells[0], width)) {
            print_line(out, style, row.paint, indent + start, line);
        }
    }
}

}  // namespace shardplan::report
