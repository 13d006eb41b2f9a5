#include "report/escapes.h"

#include <fmt/format.h>

#include "report/utf8.h"

namespace shardplan::report {
namespace {

/// What stands for one character, or "" when the character stands for itself.
using Escape = std::string_view (*)(char32_t);

std::string_view in_github_message(char32_t code) {
    switch (code) {
        case U'%': return "%25";
        case U'\r': return "%0D";
        case U'\n': return "%0A";
        default: return "";
    }
}

std::string_view in_github_property(char32_t code) {
    switch (code) {
        case U':': return "%3A";
        case U',': return "%2C";
        default: return in_github_message(code);
    }
}

std::string_view in_xml_text(char32_t code) {
    switch (code) {
        case U'&': return "&amp;";
        case U'<': return "&lt;";
        case U'>': return "&gt;";
        case U'\r': return "&#13;";
        case U'\n': return "\n";
        case U'\t': return "\t";
        case 0xfffe:
        case 0xffff: return replacement_character;
        default: return "";
    }
}

std::string_view in_xml_attribute(char32_t code) {
    switch (code) {
        case U'"': return "&quot;";
        case U'\n': return "&#10;";
        case U'\t': return "&#9;";
        default: return in_xml_text(code);
    }
}

std::string escaped(std::string_view text, Escape escape) {
    std::string result;
    while (!text.empty()) {
        const Character character = first_character(text);
        const std::string_view own = escape(character.code);
        result += character.valid && !own.empty() ? std::string(own) : printable(text.substr(0, character.length));
        text.remove_prefix(character.length);
    }
    return result;
}

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::string github_message(std::string_view text) {
    return escaped(text, in_github_message);
}

std::string github_property(std::string_view text) {
    return escaped(text, in_github_property);
}

std::string xml_text(std::string_view text) {
    return escaped(text, in_xml_text);
}

std::string xml_attribute(std::string_view text) {
    return escaped(text, in_xml_attribute);
}

std::string uri_reference(std::string_view path) {
    std::string result = path.starts_with('/') ? "file://" : "";
    for (const char c : path) {
        result += is_unreserved(c) ? std::string(1, c)
                                   : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    return result;
}

}  // namespace shardplan::report
