#include "config/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/spelling.h"
#include "config/known_elsewhere.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

/// At most 40 code points of `text`, in double quotes.
std::string quoted(std::string_view text) {
    constexpr int longest = 40;
    std::size_t end = 0;
    for (int count = 0; end < text.size() && count < longest; ++count) {
        ++end;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
            ++end;
        }
    }
    return fmt::format("\"{}{}\"", text.substr(0, end), end < text.size() ? "..." : "");
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    }
    return text;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string nearest = base::nearest_word(word, candidates);
    return nearest.empty() ? fmt::format("known: {}", joined(candidates))
                           : fmt::format("did you mean \"{}\"?", nearest);
}

/// 2^53: integers up to here are exact in floating point.
constexpr double largest_exact = 9007199254740992.0;

/// The hint with the number given, or with one as an example.
std::string with_number(std::string_view hint, const ConfigValue& given) {
    std::string text(hint);
    if (const std::size_t place = text.find('#'); place != std::string::npos) {
        text.replace(place, 1, std::to_string(given.integer() != nullptr ? *given.integer() : 2));
    }
    return text;
}

}  // namespace

std::string dotted(std::string_view pointer) {
    if (pointer.empty()) {
        return "the job";
    }
    std::string text(pointer.substr(1));
    std::replace(text.begin(), text.end(), '/', '.');
    for (const auto& [escaped, plain] : {std::pair<std::string_view, char>{"~1", '/'}, {"~0", '~'}}) {
        for (std::size_t at = text.find(escaped); at != std::string::npos; at = text.find(escaped, at + 1)) {
            text.replace(at, escaped.size(), 1, plain);
        }
    }
    return text;
}

std::string describe(const ConfigValue& value) {
    if (const auto* flag = value.boolean()) {
        return *flag ? "true" : "false";
    }
    if (const auto* integer = value.integer()) {
        return std::to_string(*integer);
    }
    if (const auto* real = value.real()) {
        return fmt::format("{}", *real);
    }
    if (const auto* huge = std::get_if<ConfigValue::Huge>(&value.data)) {
        return huge->text.size() > 40 ? huge->text.substr(0, 40) + "..." : huge->text;
    }
    if (const auto* text = value.string()) {
        return quoted(*text);
    }
    return value.is_null() ? "null" : value.is_object() ? "an object" : "an array";
}

bool is_annotation(std::string_view key) {
    return key == "$schema" || key == "$comment";
}

void report_type(const ConfigValue& value, std::string_view expected, diag::Diagnostics& diagnostics) {
    diagnostics.report("SP1005", fmt::format("{} must be {}, not {}", dotted(value.pointer), expected, describe(value)),
                       value.pointer);
}

void report_name(const ConfigValue& value, const std::vector<std::string>& names, diag::Diagnostics& diagnostics) {
    diagnostics.report(
        "SP1008", fmt::format("{} must be one of {}; not {}", dotted(value.pointer), joined(names), describe(value)),
        value.pointer, value.string() != nullptr ? suggestion(*value.string(), names) : "");
}

std::optional<std::int64_t> read_integer(const ConfigValue& value, std::int64_t lowest, std::int64_t highest,
                                         diag::Diagnostics& diagnostics) {
    std::optional<std::int64_t> number;
    const double* real = value.real();
    if (value.integer() != nullptr) {
        number = *value.integer();
    } else if (real != nullptr && std::trunc(*real) == *real && std::abs(*real) <= largest_exact) {
        number = static_cast<std::int64_t>(*real);
    } else if (!std::holds_alternative<ConfigValue::Huge>(value.data)) {
        report_type(value, "an integer", diagnostics);
        return std::nullopt;
    }
    if (!number || *number < lowest || *number > highest) {
        diagnostics.report(
            "SP1006",
            fmt::format("{} must lie in {} ... {}, not {}", dotted(value.pointer), lowest, highest, describe(value)),
            value.pointer);
        return std::nullopt;
    }
    return number;
}

ObjectReader::ObjectReader(const ConfigValue& value, std::vector<std::string> keys, diag::Diagnostics& diagnostics)
    : value_(value), diagnostics_(diagnostics) {
    const ConfigValue::Object* object = value.object();
    if (object == nullptr) {
        report_type(value, "an object", diagnostics);
        return;
    }
    constexpr int most_reported = 50;
    int unknown = 0;
    for (const auto& [key, member] : *object) {
        if (!is_annotation(key) && std::find(keys.begin(), keys.end(), key) == keys.end() &&
            ++unknown <= most_reported) {
            if (const KnownElsewhere* row = known_elsewhere(key)) {
                diagnostics.report("SP1011", fmt::format("{}: {}", dotted(member.pointer), row->what), member.pointer,
                                   with_number(row->hint, member));
                continue;
            }
            diagnostics.report("SP1004", fmt::format("{} has no key {}", dotted(value.pointer), quoted(key)),
                               member.pointer, suggestion(key, keys));
        }
    }
    if (unknown > most_reported) {
        diagnostics.report("SP1004",
                           fmt::format("{} has {} more unknown keys", dotted(value.pointer), unknown - most_reported),
                           value.pointer);
    }
}

const ConfigValue* ObjectReader::find(std::string_view key) const {
    return value_.find(key);
}

const ConfigValue* ObjectReader::require(std::string_view key, std::string_view hint) const {
    const ConfigValue* member = find(key);
    if (member == nullptr && value_.is_object()) {
        diagnostics_.report("SP1007", fmt::format("{} needs the key \"{}\"", dotted(value_.pointer), key),
                            value_.pointer, std::string(hint));
    }
    return member;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key, std::int64_t lowest,
                                                  std::int64_t highest) const {
    const ConfigValue* member = find(key);
    return member == nullptr ? std::nullopt : read_integer(*member, lowest, highest, diagnostics_);
}

const std::string* ObjectReader::text(std::string_view key) const {
    const ConfigValue* member = find(key);
    if (member != nullptr && member->string() == nullptr) {
        report_type(*member, "a string", diagnostics_);
    }
    return member == nullptr ? nullptr : member->string();
}

std::optional<bool> ObjectReader::flag(std::string_view key) const {
    const ConfigValue* member = find(key);
    if (member == nullptr) {
        return std::nullopt;
    }
    if (member->boolean() == nullptr) {
        report_type(*member, "true or false", diagnostics_);
        return std::nullopt;
    }
    return *member->boolean();
}

}  // namespace shardplan::config
