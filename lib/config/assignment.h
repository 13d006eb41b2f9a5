// The form of what --set takes. Knows neither the keys nor the values.
#pragma once

#include <string_view>

namespace shardplan::config {

/// Whether `text` has the form "key.path=value", every key of the path with a name.
bool is_assignment(std::string_view text);

}  // namespace shardplan::config
