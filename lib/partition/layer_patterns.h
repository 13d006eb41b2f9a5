// Whether a pattern may match the name of a parameter in one layer and not in another. A reading of the pattern's text,
// on the safe side: "yes" only costs that every layer is asked.
#pragma once

#include <string_view>

namespace shardplan::partition {

bool may_tell_layers_apart(std::string_view pattern);

}  // namespace shardplan::partition
