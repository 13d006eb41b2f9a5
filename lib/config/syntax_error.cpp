#include "config/syntax_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardplan::config {
namespace {

using Last = TokenCursor::Last;

constexpr std::string_view word_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.+-";

std::size_t code_point_end(std::string_view text, std::size_t i) {
    std::size_t end = std::min(i + 1, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
        ++end;
    }
    return end;
}

/// The word, number or single character at `i`.
TextRange token_at(std::string_view text, std::size_t i) {
    const std::size_t end = std::min(text.find_first_not_of(word_characters, i), text.size());
    return {i, end > i ? end : code_point_end(text, i)};
}

std::string quoted(std::string_view text, TextRange range) {
    constexpr std::size_t longest = 60;
    const std::string_view token = text.substr(range.begin, range.end - range.begin);
    if (token.size() == 1 && static_cast<unsigned char>(token[0]) < 0x20U) {
        return fmt::format("the control character 0x{:02x}", static_cast<unsigned>(token[0]));
    }
    return token.size() > longest ? fmt::format("'{}...'", token.substr(0, longest)) : fmt::format("'{}'", token);
}

bool in_object(const FailedParse& parse) {
    return parse.container && parse.text[*parse.container] == '{';
}

bool key_expected(const FailedParse& parse) {
    const bool start_of_member =
        parse.place.last == Last::open || (parse.place.last == Last::value && parse.place.separator);
    return in_object(parse) && start_of_member;
}

TextProblem explain_end(const FailedParse& parse) {
    const std::size_t end = parse.text.size();
    if (!parse.container) {
        return {{end, end}, "the document ends before its value", ""};
    }
    const diag::SourceSpan opened = span_of({"", std::string(parse.text)}, {*parse.container, *parse.container + 1});
    return {{end, end},
            fmt::format("unexpected end of the document: the {} opened at line {}, column {} is not closed",
                        in_object(parse) ? "object" : "array", opened.line, opened.column),
            "the file may have been cut off"};
}

TextProblem explain_string(const FailedParse& parse) {
    const std::size_t begin = parse.place.next;
    const std::size_t bad = parse.offending_byte;
    if (bad >= parse.text.size()) {
        return {{begin, parse.text.size()}, "the string that begins here is not closed", "add the closing '\"'"};
    }
    const TextRange range{bad, code_point_end(parse.text, bad)};
    const auto byte = static_cast<unsigned char>(parse.text[bad]);
    if (byte == '\n' || byte == '\r') {
        return {{begin, bad}, "the string is not closed before the end of the line", "write a line break as \\n"};
    }
    if (byte < 0x20U) {
        return {range, fmt::format("control character 0x{:02x} in a string", static_cast<unsigned>(byte)),
                fmt::format("write it as \\u{:04x}", static_cast<unsigned>(byte))};
    }
    return {range, "invalid escape in a string",
            R"(escapes are \" \\ \/ \b \f \n \r \t and \uXXXX; surrogates come in pairs; a backslash is written \\)"};
}

/// Values as other languages write them.
std::optional<TextProblem> explain_foreign_word(std::string_view text, TextRange range) {
    struct Word {
        std::string_view spelling;
        std::string_view json;
    };
    static constexpr auto words = std::to_array<Word>({{"True", "true"},
                                                       {"TRUE", "true"},
                                                       {"False", "false"},
                                                       {"FALSE", "false"},
                                                       {"None", "null"},
                                                       {"NULL", "null"},
                                                       {"nil", "null"},
                                                       {"undefined", "null"}});
    const std::string_view token = text.substr(range.begin, range.end - range.begin);
    for (const Word& word : words) {
        if (token == word.spelling) {
            return TextProblem{range, fmt::format("'{}' is not a JSON value", token),
                               fmt::format("write {}", word.json)};
        }
    }
    const std::string_view unsigned_token = token.substr(token.find_first_not_of("+-") == 1 ? 1 : 0);
    for (const std::string_view number : {"NaN", "nan", "NAN", "Infinity", "infinity", "Inf", "inf"}) {
        if (unsigned_token == number) {
            return TextProblem{range, fmt::format("'{}' is not a number in JSON", token), "write a finite number"};
        }
    }
    return std::nullopt;
}

TextProblem explain_value(const FailedParse& parse) {
    const std::string_view text = parse.text;
    const TextRange range = token_at(text, parse.place.next);
    const char first = text[range.begin];
    if (first == '"') {
        return explain_string(parse);
    }
    if (first == '\'') {
        return {range, "strings need double quotes", "write \"...\""};
    }
    if (auto problem = explain_foreign_word(text, range)) {
        return *problem;
    }
    if ((first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.') {
        return {range, fmt::format("{} is not a number in JSON", quoted(text, range)),
                "a number has no plus sign, no leading zero, and digits on both sides of its point"};
    }
    if (range.end - range.begin > 1 || word_characters.find(first) != std::string_view::npos) {
        return {range, fmt::format("{} is not a JSON value", quoted(text, range)),
                "a text needs double quotes; a template must be filled in first"};
    }
    return {range, fmt::format("expected a value, found {}", quoted(text, range)), ""};
}

TextProblem explain_key(const FailedParse& parse) {
    const TextRange range = token_at(parse.text, parse.place.next);
    const char first = parse.text[range.begin];
    if (first == '"') {
        return explain_string(parse);
    }
    if (first == '\'' || word_characters.find(first) != std::string_view::npos) {
        return {range, fmt::format("a key needs double quotes, found {}", quoted(parse.text, range)), ""};
    }
    return {range, fmt::format("expected a key in double quotes, found {}", quoted(parse.text, range)), ""};
}

/// After a value that is followed neither by a separator nor by the end of its container.
TextProblem explain_missing_separator(const FailedParse& parse) {
    const std::string_view text = parse.text;
    const TextRange range = token_at(text, parse.place.next);
    const char before = text[parse.place.last_end - 1];
    if (range.begin == parse.place.last_end && (before >= '0' && before <= '9')) {
        const std::size_t start = text.find_last_not_of(word_characters, range.begin - 1);
        const TextRange number{start == std::string_view::npos ? 0 : start + 1, range.end};
        if (range.end - range.begin > 1 || word_characters.find(text[range.begin]) != std::string_view::npos) {
            return {number, fmt::format("{} is not a number in JSON", quoted(text, number)),
                    "numbers are decimal, without leading zeros"};
        }
    }
    if (!parse.container) {
        return {range, fmt::format("text after the document: {}", quoted(text, range)),
                "a file holds one JSON document"};
    }
    const std::string_view closing = in_object(parse) ? "}" : "]";
    if (text[range.begin] == '}' || text[range.begin] == ']') {
        return {range,
                fmt::format("{} cannot close {}", quoted(text, range), in_object(parse) ? "an object" : "an array"),
                fmt::format("write '{}'", closing)};
    }
    return {range, fmt::format("expected ',' or '{}' before {}", closing, quoted(text, range)), ""};
}

}  // namespace

TextProblem explain_syntax(const FailedParse& parse) {
    const TokenCursor::Place& place = parse.place;
    if (place.next >= parse.text.size()) {
        return explain_end(parse);
    }
    const char next = parse.text[place.next];
    if (next == '/' || next == '#') {
        const TextRange range{place.next, std::min(parse.text.find('\n', place.next), parse.text.size())};
        return {range, "comments are not allowed in JSON", "a job may say \"$comment\": \"...\""};
    }
    if (place.last == Last::value && !place.separator) {
        return explain_missing_separator(parse);
    }
    if (place.last == Last::value && (next == '}' || next == ']')) {
        return {{*place.separator, *place.separator + 1}, fmt::format("trailing comma before '{}'", next), "remove it"};
    }
    if (place.last == Last::key && !place.separator) {
        const TextRange range = token_at(parse.text, place.next);
        return {range, fmt::format("expected ':' after the key, found {}", quoted(parse.text, range)), ""};
    }
    return key_expected(parse) ? explain_key(parse) : explain_value(parse);
}

}  // namespace shardplan::config
