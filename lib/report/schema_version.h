// The version of every JSON document that report writes: the first number changes when a field is removed or changes
// its meaning, the second when fields are added.
#pragma once

#include <string_view>

namespace shardplan::report {

inline constexpr std::string_view schema_version = "1.0";

}  // namespace shardplan::report
