// A text that every match of a regular expression contains: names without it need no matching.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::partition {

/// The longest run of plain characters outside of groups that an ECMAScript pattern cannot match without; "" when there
/// is none or when alternatives stand outside of groups. It never promises too much: what it does not understand counts
/// as no text.
/// @pre the pattern is a valid regular expression
std::string required_text(std::string_view pattern);

}  // namespace shardplan::partition
