#include "model/field_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace shardplan::model {
namespace {

/// An integer, or a number without a fraction that an integer can hold exactly.
std::optional<std::int64_t> whole_number(const ConfigValue& value) {
    if (const std::int64_t* integer = value.integer()) {
        return *integer;
    }
    const double* real = value.real();
    if (real != nullptr && std::floor(*real) == *real && std::abs(*real) <= 9007199254740992.0) {
        return static_cast<std::int64_t>(*real);
    }
    return std::nullopt;
}

/// The key; of an element of a list with the key of the list: "short_factor[3]".
std::string shown_key(const ConfigValue& value) {
    const std::string_view last = key_of(value);
    const bool index = !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
    if (!index || last.size() + 1 >= value.pointer.size()) {
        return std::string(last);
    }
    const std::string_view around = std::string_view(value.pointer).substr(0, value.pointer.size() - last.size() - 1);
    return fmt::format("{}[{}]", around.substr(around.rfind('/') + 1), last);
}

std::string quoted_list(FieldReader::Keys keys, std::size_t from) {
    std::string text;
    for (std::size_t i = from; i < keys.size(); ++i) {
        text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", keys.begin()[i]);
    }
    return text;
}

}  // namespace

std::string describe(const ConfigValue& value) {
    if (const std::string* text = value.string()) {
        return text->size() > 60 ? fmt::format("\"{}...\"", text->substr(0, 57)) : fmt::format("\"{}\"", *text);
    }
    if (const bool* flag = value.boolean()) {
        return *flag ? "true" : "false";
    }
    if (const std::int64_t* integer = value.integer()) {
        return fmt::format("{}", *integer);
    }
    if (const double* real = value.real()) {
        if (!std::isfinite(*real)) {
            return std::isnan(*real) ? "NaN" : *real > 0.0 ? "Infinity" : "-Infinity";
        }
        return fmt::format("{}", *real);
    }
    if (const auto* huge = std::get_if<ConfigValue::Huge>(&value.data)) {
        return huge->text.substr(0, 60);
    }
    return value.is_null() ? "null" : fmt::format("an {}", value.type_name());
}

std::string_view key_of(const ConfigValue& value) {
    const std::size_t slash = value.pointer.rfind('/');
    return slash == std::string::npos ? std::string_view(value.pointer)
                                      : std::string_view(value.pointer).substr(slash + 1);
}

const ConfigValue* FieldReader::find(Keys keys) const {
    for (const std::string_view key : keys) {
        const ConfigValue* value = object_.find(key);
        if (value != nullptr && !value->is_null()) {
            return value;
        }
    }
    return nullptr;
}

bool FieldReader::is_null(Keys keys) const {
    bool null_seen = false;
    for (const std::string_view key : keys) {
        const ConfigValue* value = object_.find(key);
        if (value != nullptr && !value->is_null()) {
            return false;
        }
        null_seen = null_seen || value != nullptr;
    }
    return null_seen;
}

std::string FieldReader::pointer(Keys keys) const {
    const ConfigValue* value = find(keys);
    return value != nullptr ? value->pointer : object_.pointer;
}

void FieldReader::report(std::string_view code, Keys keys, std::string message, std::string hint) {
    ok_ = false;
    diagnostics_.report(code, std::move(message), pointer(keys), std::move(hint));
}

void FieldReader::wrong_type(const ConfigValue& value, std::string_view expected) {
    ok_ = false;
    const bool scalar = !value.is_null() && !value.is_object() && value.array() == nullptr;
    const std::string type = scalar ? fmt::format(" ({})", value.type_name()) : "";
    diagnostics_.report("SP1005",
                        fmt::format("{} must be {}, not {}{}", shown_key(value), expected, describe(value), type),
                        value.pointer);
}

void FieldReader::missing(Keys keys) {
    std::string message = fmt::format("the config has no \"{}\"", *keys.begin());
    if (keys.size() > 1) {
        message += fmt::format(" (nor {})", quoted_list(keys, 1));
    }
    ok_ = false;
    diagnostics_.report("SP1007", std::move(message), object_.pointer,
                        fmt::format("add \"{}\" with the Hugging Face meaning", *keys.begin()));
}

std::optional<std::int64_t> FieldReader::checked_size(const ConfigValue& value, std::int64_t largest) {
    const bool huge = std::holds_alternative<ConfigValue::Huge>(value.data);
    const double* real = value.real();
    const bool far = real != nullptr && std::abs(*real) > 9007199254740992.0;
    const std::optional<std::int64_t> number = whole_number(value);
    if (!number && !huge && !far) {
        wrong_type(value, "an integer");
        return std::nullopt;
    }
    if (!number || *number < 1 || *number > largest) {
        ok_ = false;
        diagnostics_.report("SP1006",
                            fmt::format("{} must lie in 1 ... {}, not {}", key_of(value), largest, describe(value)),
                            value.pointer);
        return std::nullopt;
    }
    return number;
}

std::int64_t FieldReader::size(Keys keys, std::int64_t largest) {
    std::optional<std::int64_t> result;
    const ConfigValue* first = nullptr;
    for (const std::string_view key : keys) {
        const ConfigValue* value = object_.find(key);
        if (value == nullptr || value->is_null()) {
            continue;
        }
        const std::optional<std::int64_t> number = checked_size(*value, largest);
        if (result && number && *number != *result) {
            ok_ = false;
            diagnostics_.report("SP2003",
                                fmt::format("\"{}\" is {} but \"{}\", which means the same, is {}", key_of(*first),
                                            *result, key, *number),
                                value->pointer, "keep one of the two");
        }
        if (first == nullptr) {
            first = value;
            result = number;
        }
    }
    if (first == nullptr) {
        missing(keys);
    }
    return result.value_or(1);
}

std::optional<std::int64_t> FieldReader::optional_size(Keys keys, std::int64_t largest) {
    const ConfigValue* value = find(keys);
    return value != nullptr ? checked_size(*value, largest) : std::nullopt;
}

std::optional<double> FieldReader::checked_number(const ConfigValue& value, double lowest, double highest) {
    const double* real = value.real();
    const std::int64_t* integer = value.integer();
    if (real == nullptr && integer == nullptr) {
        wrong_type(value, "a number");
        return std::nullopt;
    }
    const double number = real != nullptr ? *real : static_cast<double>(*integer);
    if (!(number >= lowest && number <= highest)) {
        ok_ = false;
        const std::string range =
            lowest == std::numeric_limits<double>::min()
                ? (number <= 0.0 || std::isnan(number) ? std::string("be greater than 0")
                                                       : fmt::format("lie above 0, up to {}", highest))
                : fmt::format("lie in {} ... {}", lowest, highest);
        diagnostics_.report("SP1006", fmt::format("{} must {}, not {}", shown_key(value), range, describe(value)),
                            value.pointer);
        return std::nullopt;
    }
    return number;
}

std::optional<double> FieldReader::optional_number(Keys keys, double lowest, double highest) {
    const ConfigValue* value = find(keys);
    return value != nullptr ? checked_number(*value, lowest, highest) : std::nullopt;
}

double FieldReader::positive_or(Keys keys, double fallback) {
    return number_or(keys, fallback, std::numeric_limits<double>::min(), 1e30);
}

bool FieldReader::flag_or(Keys keys, bool fallback) {
    const ConfigValue* value = find(keys);
    if (value == nullptr) {
        return fallback;
    }
    if (const bool* flag = value->boolean()) {
        return *flag;
    }
    wrong_type(*value, "true or false");
    return fallback;
}

std::string FieldReader::word_or(Keys keys, std::string_view fallback) {
    const ConfigValue* value = find(keys);
    if (value == nullptr) {
        return std::string(fallback);
    }
    if (const std::string* text = value->string()) {
        return *text;
    }
    wrong_type(*value, "text");
    return std::string(fallback);
}

std::vector<double> FieldReader::numbers(Keys keys, std::size_t count) {
    const ConfigValue* value = find(keys);
    if (value == nullptr) {
        return {};
    }
    const ConfigValue::Array* array = value->array();
    if (array == nullptr) {
        wrong_type(*value, "an array of numbers");
        return {};
    }
    if (array->size() != count) {
        report("SP2003", keys, fmt::format("{} has {} values, {} are needed", key_of(*value), array->size(), count));
        return {};
    }
    std::vector<double> result;
    for (const ConfigValue& element : *array) {
        result.push_back(checked_number(element, std::numeric_limits<double>::min(), 1e30).value_or(1.0));
    }
    return result;
}

}  // namespace shardplan::model
