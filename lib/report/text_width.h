// How many columns of a terminal a text takes, and breaking it into lines of a given width.
// Good enough for names: East Asian wide characters and emoji count two, combining marks none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan::report {

int display_width(std::string_view text);

/// The longest head of `text` that fits into `width` columns.
std::string_view fitting_head(std::string_view text, int width);

/// Lines of at most `width` columns (at least one line; a wide character may exceed width 1). Breaks at blanks, which
/// are dropped, else behind one of ",./:_-|)", else anywhere. Continuation lines keep the leading blanks of the text.
/// @pre width >= 1
std::vector<std::string> wrap(std::string_view text, int width);

/// `text` and blanks up to `width`.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

/// `piece` repeated.
std::string repeat(std::string_view piece, int count);

}  // namespace shardplan::report
