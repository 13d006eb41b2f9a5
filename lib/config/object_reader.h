// Strict reads of the job's own objects: a key must be known, a value must have the type and range of its field.
// Every problem becomes a diagnostic and the read yields nothing, so that one run finds all problems of a job.
// "$schema" and "$comment" are allowed in every object. Knows nothing of what the fields mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "model/config_value.h"

namespace shardplan::config {

/// "/mesh/axes/tp" -> "mesh.axes.tp"; "" -> "the job".
std::string dotted(std::string_view pointer);

/// The value for messages: null, true, 3, "text" (cut), an array, an object.
std::string describe(const model::ConfigValue& value);

/// True for "$schema" and "$comment".
bool is_annotation(std::string_view key);

/// SP1005: `value` should be `expected`, e.g. "an integer".
void report_type(const model::ConfigValue& value, std::string_view expected, diag::Diagnostics& diagnostics);

/// SP1008: `value` is none of `names`; suggests the nearest.
void report_name(const model::ConfigValue& value, const std::vector<std::string>& names,
                 diag::Diagnostics& diagnostics);

/// The value as an integer within [lowest, highest]; 64.0 counts as 64. SP1005, SP1006.
std::optional<std::int64_t> read_integer(const model::ConfigValue& value, std::int64_t lowest, std::int64_t highest,
                                         diag::Diagnostics& diagnostics);

class ObjectReader {
public:
    /// Reports a value that is no object (SP1005) and keys that are not in `keys` (SP1004).
    ObjectReader(const model::ConfigValue& value, std::vector<std::string> keys, diag::Diagnostics& diagnostics);

    /// The member, or nullptr when absent.
    const model::ConfigValue* find(std::string_view key) const;
    /// The member; SP1007 when absent.
    const model::ConfigValue* require(std::string_view key, std::string_view hint) const;

    std::optional<std::int64_t> integer(std::string_view key, std::int64_t lowest, std::int64_t highest) const;
    const std::string* text(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;

    template <typename Value>
    using Choices = std::span<const std::pair<std::string_view, Value>>;

    template <typename Value>
    std::optional<Value> choice(std::string_view key, Choices<Value> choices) const {
        const std::string* name = text(key);
        if (name == nullptr) {
            return std::nullopt;
        }
        std::vector<std::string> names;
        for (const auto& [spelling, value] : choices) {
            if (*name == spelling) {
                return value;
            }
            names.emplace_back(spelling);
        }
        report_name(*find(key), names, diagnostics_);
        return std::nullopt;
    }

private:
    const model::ConfigValue& value_;
    diag::Diagnostics& diagnostics_;
};

}  // namespace shardplan::config
