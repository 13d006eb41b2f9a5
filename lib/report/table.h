// Text tables: columns as wide as their cells, numbers to the right, long cells folded when the table is wider than the
// style allows. Cells are plain text (made printable here); colour belongs to whole rows. Does not know what it shows.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "report/style.h"

namespace shardplan::report {

struct Column {
    std::string title;
    bool right = false;
    int least = 0;  ///< the width it may be folded to; 0 = never folded
};

class Table {
public:
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// Missing cells are empty. @pre not more cells than columns
    void add_row(std::vector<std::string> cells, Paint paint = Paint::plain);
    /// A line over the whole width, at the first column.
    void add_heading(std::string text);
    /// Lines below the row before, starting at `column`, wrapped.
    void add_note(std::string text, int column, Paint paint = Paint::muted);
    bool empty() const { return rows_.empty(); }

    /// Titles, a rule and the rows, each line after `indent` blanks. No trailing blanks.
    void print(std::ostream& out, const Style& style, int indent = 2) const;

private:
    enum class Kind { cells, heading, note };
    struct Row {
        Kind kind = Kind::cells;
        std::vector<std::string> cells;
        int column = 0;  ///< notes
        Paint paint = Paint::plain;
    };

    int cells_wider_than(std::size_t column, int width) const;
    /// Narrows, column by column, where the fewest cells need a second line.
    std::vector<int> widths(int available) const;
    void print_cells(std::ostream& out, const Style& style, const Row& row, const std::vector<int>& widths,
                     int indent) const;

    std::vector<Column> columns_;
    std::vector<Row> rows_;
};

}  // namespace shardplan::report
