#include "report/utf8.h"

#include <fmt/format.h>

namespace shardplan::report {
namespace {

constexpr Character invalid{0xfffd, 1, false};

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

bool reorders_text(char32_t code) {
    return (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

bool is_control(char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

}  // namespace

Character first_character(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    if (lead < 0x80) {
        return {lead, 1, true};
    }
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
        return invalid;
    }
    char32_t code = lead & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if (!is_continuation(text[i])) {
            return invalid;
        }
        code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3fU);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return invalid;
    }
    return {code, length, true};
}

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const Character character = first_character(text);
        if (!character.valid) {
            result += replacement_character;
        } else if (is_control(character.code)) {
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(character.code));
        } else if (reorders_text(character.code)) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
        } else {
            result += text.substr(0, character.length);
        }
        text.remove_prefix(character.length);
    }
    return result;
}

}  // namespace shardplan::report
