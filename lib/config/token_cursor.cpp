#include "config/token_cursor.h"

#include <algorithm>

#include "config/python_numbers.h"

namespace shardplan::config {
namespace {

constexpr std::string_view digits = "0123456789";

std::size_t skip(std::string_view text, std::size_t i, std::string_view characters) {
    return std::min(text.find_first_not_of(characters, i), text.size());
}

std::size_t skip_space(std::string_view text, std::size_t i) {
    return skip(text, i, " \t\r\n");
}

/// @pre text begins with a complete string
std::size_t string_length(std::string_view text) {
    std::size_t i = 1;
    while (i < text.size() && text[i] != '"') {
        i += text[i] == '\\' ? 2 : 1;
    }
    return std::min(i + 1, text.size());
}

std::size_t token_length(std::string_view text) {
    if (const auto number = python_number_at(text)) {
        return number->length;
    }
    switch (text.empty() ? '\0' : text.front()) {
        case '"': return string_length(text);
        case 't':
        case 'n': return 4;
        case 'f': return 5;
        case '{':
        case '}':
        case '[':
        case ']': return 1;
        default: return number_length(text);
    }
}

}  // namespace

std::size_t number_length(std::string_view text) {
    std::size_t i = text.starts_with('-') ? 1 : 0;
    const std::size_t whole = i;
    i = text.substr(i).starts_with('0') ? i + 1 : skip(text, i, digits);
    if (i == whole) {
        return 0;
    }
    if (i < text.size() && text[i] == '.') {
        const std::size_t end = skip(text, i + 1, digits);
        i = end > i + 1 ? end : i;
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        std::size_t exponent = i + 1;
        if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) {
            ++exponent;
        }
        const std::size_t end = skip(text, exponent, digits);
        i = end > exponent ? end : i;
    }
    return i;
}

TextRange TokenCursor::take(Last kind) {
    const std::size_t begin = place().next;
    end_ = std::min(begin + token_length(text_.substr(begin)), text_.size());
    last_ = kind;
    return {begin, end_};
}

TokenCursor::Place TokenCursor::place() const {
    Place result{last_, std::nullopt, skip_space(text_, end_), end_};
    const char separator = last_ == Last::key ? ':' : last_ == Last::value ? ',' : '\0';
    if (separator != '\0' && result.next < text_.size() && text_[result.next] == separator) {
        result.separator = result.next;
        result.next = skip_space(text_, result.next + 1);
    }
    return result;
}

}  // namespace shardplan::config
