// What a JSON file found in a directory is, from its top level only: a job, the config of a model, or something else.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/config_value.h"

namespace shardplan::config {

enum class JsonKind : std::uint8_t { job, model, other };

/// A job has at least two of the job's keys at its top level, one of them perhaps misspelt, or names
/// shardplan.schema.json as its "$schema". A text that is no JSON counts as a job, so that its syntax is reported,
/// unless it begins as JSON does and mentions none of the keys: that may be JSON with comments, of another tool.
JsonKind kind_of(std::string_view text);

/// An object that is a model's config and not a job.
bool is_bare_model(const model::ConfigValue& root);

/// An object without any key of a job, not even a misspelt one, or of a model: a file of some other tool.
bool is_foreign(const model::ConfigValue& root);

}  // namespace shardplan::config
