#include "report/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <ostream>
#include <string>

#include "report/utf8.h"

namespace shardplan::report {
namespace {

std::string escaped(char c) {
    switch (c) {
        case '"': return "\\\"";
        case '\\': return "\\\\";
        case '\b': return "\\b";
        case '\f': return "\\f";
        case '\n': return "\\n";
        case '\r': return "\\r";
        case '\t': return "\\t";
        default: return fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
}

/// Bytes at the head of `text` that need no escaping.
std::size_t plain_length(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size() && static_cast<unsigned char>(text[n]) - 0x20U < 0x60U && text[n] != '"' &&
           text[n] != '\\') {
        ++n;
    }
    return n;
}

}  // namespace

void JsonWriter::flush() {
    out_.write(pending_.data(), static_cast<std::streamsize>(pending_.size()));
    pending_.clear();
}

void JsonWriter::open(char bracket, JsonLayout layout) {
    separate();
    raw({&bracket, 1});
    const bool within_line = !levels_.empty() && levels_.back().one_line;
    levels_.push_back({within_line || layout == JsonLayout::one_line, true});
}

void JsonWriter::close(char bracket) {
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.empty && !level.one_line) {
        break_line();
    }
    raw({&bracket, 1});
    if (levels_.empty()) {
        raw("\n");
    }
    if (levels_.empty() || pending_.size() >= block) {
        flush();
    }
}

void JsonWriter::separate() {
    if (after_key_ || levels_.empty()) {
        after_key_ = false;
        return;
    }
    if (pending_.size() >= block) {
        flush();
    }
    Level& level = levels_.back();
    if (!level.empty) {
        raw(level.one_line ? ", " : ",");
    }
    if (!level.one_line) {
        break_line();
    }
    level.empty = false;
}

void JsonWriter::break_line() {
    constexpr std::string_view blanks = "                                ";
    raw("\n");
    for (std::size_t indent = 2 * levels_.size(); indent > 0;) {
        const std::size_t piece = std::min(indent, blanks.size());
        raw(blanks.substr(0, piece));
        indent -= piece;
    }
}

void JsonWriter::write_key(std::string_view key) {
    separate();
    write_string(key);
    raw(": ");
    after_key_ = true;
}

void JsonWriter::write_string(std::string_view text) {
    raw("\"");
    while (true) {
        const std::size_t plain = plain_length(text);
        raw(text.substr(0, plain));
        text.remove_prefix(plain);
        if (text.empty()) {
            break;
        }
        const Character character = first_character(text);
        if (!character.valid) {
            raw(replacement_character);
        } else if (character.length == 1) {
            raw(escaped(text[0]));
        } else {
            raw(text.substr(0, character.length));
        }
        text.remove_prefix(character.length);
    }
    raw("\"");
}

void JsonWriter::write_integer(std::int64_t number) {
    const fmt::format_int text(number);
    raw({text.data(), text.size()});
}

void JsonWriter::write_unsigned(std::uint64_t number) {
    const fmt::format_int text(number);
    raw({text.data(), text.size()});
}

void JsonWriter::write_double(double number) {
    if (!std::isfinite(number)) {
        raw("null");
        return;
    }
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), "{}", number);
    const std::string_view digits(text.data(), text.size());
    raw(digits);
    if (digits.find_first_of(".e") == std::string_view::npos) {
        raw(".0");
    }
}

}  // namespace shardplan::report
