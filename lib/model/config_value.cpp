#include "model/config_value.h"

#include <algorithm>
#include <array>

namespace shardplan::model {

const ConfigValue* ConfigValue::find(std::string_view key) const {
    const Object* members = object();
    if (members == nullptr) {
        return nullptr;
    }
    const auto it = std::find_if(members->begin(), members->end(), [&](const auto& m) { return m.first == key; });
    return it == members->end() ? nullptr : &it->second;
}

std::string_view ConfigValue::type_name() const {
    constexpr std::array<std::string_view, 8> names = {"null",    "boolean", "integer", "number",
                                                       "integer", "string",  "array",   "object"};
    return names[data.index()];
}

}  // namespace shardplan::model
