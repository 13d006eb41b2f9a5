// How text looks: colours, characters and width. The app decides (terminal, NO_COLOR, --color, --ascii); without colour
// nothing is lost, since no colour is the only sign of anything.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::report {

struct Style {
    bool colour = false;
    bool ascii = false;  ///< no characters beyond ASCII of our own (names are printed as they are)
    int width = 120;     ///< columns that tables are folded to
};

enum class Paint { plain, heading, muted, error, warning, note, good, moved };

/// `text` in the paint's ANSI colour, or as it is.
std::string paint(const Style& style, Paint paint, std::string_view text);

/// The characters of lines and marks, by style.
struct Marks {
    std::string_view horizontal, vertical, cross, ellipsis, arrow, moved, full_bar;
    std::string_view top_left, top, top_right, left, right, bottom_left, bottom, bottom_right;
};
const Marks& marks(const Style& style);

}  // namespace shardplan::report
