// One UTF-8 character at a time (RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF).
// Job files hold any bytes; everything that is printed passes here first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardplan::report {

struct Character {
    char32_t code = 0;       ///< U+FFFD when not valid
    std::size_t length = 1;  ///< bytes; 1 when not valid
    bool valid = true;
};

/// The first character of `text`. @pre text is not empty
Character first_character(std::string_view text);

/// Bytes of the replacement character U+FFFD.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// For terminals: control characters become "\x1b", invalid bytes U+FFFD; nothing in a job can move the cursor.
/// Characters that reorder text (bidirectional marks) are written as "\u202e".
std::string printable(std::string_view text);

}  // namespace shardplan::report
