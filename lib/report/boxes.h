// A grid of boxes with lines of text, drawn with box characters or ASCII.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/style.h"

namespace shardplan::report {

using BoxText = std::vector<std::string>;           ///< lines of one box
using BoxGrid = std::vector<std::vector<BoxText>>;  ///< rows of boxes, all of the same number

/// The width of the boxes' inside: the longest line, at least 7, and a blank on both sides.
int box_width(const BoxGrid& grid);

/// How many boxes stand side by side in style.width after `indent`; at least one.
int boxes_that_fit(const BoxGrid& grid, const Style& style, int indent);

/// All boxes have one size; text is centred.
void draw_boxes(std::ostream& out, const BoxGrid& grid, const Style& style, int indent = 2);

}  // namespace shardplan::report
