// A JSON-like value tree that remembers where each value stands (JSON pointer). The config room makes it from text;
// the model room reads Hugging Face configs from it without knowing JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardplan::model {

struct ConfigValue {
    struct Member;
    using Array = std::vector<ConfigValue>;
    /// In document order; keys are unique (the reader refuses duplicates).
    using Object = std::vector<Member>;

    /// An integer literal that does not fit in 64 bits is kept as Huge with its text.
    struct Huge {
        std::string text;
    };

    std::variant<std::monostate, bool, std::int64_t, double, Huge, std::string, Array, Object> data;
    std::string pointer;  ///< RFC 6901, "" for the document

    bool is_null() const { return std::holds_alternative<std::monostate>(data); }
    bool is_object() const { return std::holds_alternative<Object>(data); }
    const Object* object() const { return std::get_if<Object>(&data); }
    const Array* array() const { return std::get_if<Array>(&data); }
    const std::string* string() const { return std::get_if<std::string>(&data); }
    const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data); }
    const double* real() const { return std::get_if<double>(&data); }
    const bool* boolean() const { return std::get_if<bool>(&data); }
    /// The member, or nullptr when absent or when this is no object.
    const ConfigValue* find(std::string_view key) const;
    /// "null", "boolean", "integer", "number", "string", "array" or "object": for messages.
    std::string_view type_name() const;
};

/// Not a std::pair, which would need the complete type of its second already within the class.
struct ConfigValue::Member {
    Member(std::string key, ConfigValue value) : first(std::move(key)), second(std::move(value)) {}
    std::string first;
    ConfigValue second;
};

}  // namespace shardplan::model
