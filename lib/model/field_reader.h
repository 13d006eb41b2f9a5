// FieldReader: strict typed reads from one object of a Hugging Face config. Every problem becomes a diagnostic with the
// pointer of the value; reading goes on with a harmless value, so that all problems are found at once (see ok()).
// Sizes may be written 64 or 64.0, never as a boolean, text, a fraction, or beyond 2^40. An absent key and an explicit
// null are the same except where a function says otherwise. Keys are lists of names: the first present one counts.
// It knows nothing of model families.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "model/config_value.h"

namespace shardplan::model {

class FieldReader {
public:
    using Keys = std::initializer_list<std::string_view>;
    static constexpr std::int64_t largest_size = std::int64_t{1} << 40;

    /// @pre `object` is an object and outlives the reader.
    FieldReader(const ConfigValue& object, diag::Diagnostics& diagnostics)
        : object_(object), diagnostics_(diagnostics) {}

    /// Required, 1 ... `largest`; SP1007 when absent. Two aliases with different values are a contradiction (SP2003).
    std::int64_t size(Keys keys, std::int64_t largest = largest_size);
    /// 1 ... `largest`, or nullopt when absent or null.
    std::optional<std::int64_t> optional_size(Keys keys, std::int64_t largest = largest_size);
    std::int64_t size_or(Keys keys, std::int64_t fallback) { return optional_size(keys).value_or(fallback); }
    /// A finite number in [lowest, highest].
    std::optional<double> optional_number(Keys keys, double lowest, double highest);
    double number_or(Keys keys, double fallback, double lowest, double highest) {
        return optional_number(keys, lowest, highest).value_or(fallback);
    }
    /// A number > 0; null means `if_null`.
    double positive_or(Keys keys, double fallback);
    bool flag_or(Keys keys, bool fallback);
    std::string word_or(Keys keys, std::string_view fallback);
    /// An array of `count` numbers > 0; empty when absent or wrong.
    std::vector<double> numbers(Keys keys, std::size_t count);

    /// The value of the first key that is present and not null, else nullptr.
    const ConfigValue* find(Keys keys) const;
    /// Is one of the keys present with the value null (and none with another value)?
    bool is_null(Keys keys) const;
    /// The pointer of the first present key, else of the object.
    std::string pointer(Keys keys) const;

    /// SP1005: "`what`" is of another type than `expected`.
    void wrong_type(const ConfigValue& value, std::string_view expected);
    /// SP2003, SP2002, ... at the first present key.
    void report(std::string_view code, Keys keys, std::string message, std::string hint = "");
    void missing(Keys keys);

    /// No problem was found by this reader so far.
    bool ok() const { return ok_; }
    void fail() { ok_ = false; }
    const ConfigValue& object() const { return object_; }
    diag::Diagnostics& diagnostics() { return diagnostics_; }

private:
    std::optional<std::int64_t> checked_size(const ConfigValue& value, std::int64_t largest);
    std::optional<double> checked_number(const ConfigValue& value, double lowest, double highest);

    const ConfigValue& object_;
    diag::Diagnostics& diagnostics_;
    bool ok_ = true;
};

/// The value as text for a message: 64, "silu", true, [...]; long text is cut.
std::string describe(const ConfigValue& value);
/// The last token of a pointer: the key, for messages.
std::string_view key_of(const ConfigValue& value);

}  // namespace shardplan::model
