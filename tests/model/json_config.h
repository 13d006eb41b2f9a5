// Reads test data into ConfigValue with the JSON library itself: the model's tests do not depend on the config room.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "diag/diagnostic.h"
#include "model/config_value.h"

namespace shardplan::model {

using Json = nlohmann::ordered_json;

inline ConfigValue to_config(const Json& json, const std::string& pointer = "") {
    ConfigValue value;
    value.pointer = pointer;
    switch (json.type()) {
        case Json::value_t::boolean: value.data = json.get<bool>(); break;
        case Json::value_t::number_integer:
        case Json::value_t::number_unsigned: value.data = json.get<std::int64_t>(); break;
        case Json::value_t::number_float: value.data = json.get<double>(); break;
        case Json::value_t::string: value.data = json.get<std::string>(); break;
        case Json::value_t::array: {
            ConfigValue::Array array;
            for (std::size_t i = 0; i < json.size(); ++i) {
                array.push_back(to_config(json[i], pointer + "/" + std::to_string(i)));
            }
            value.data = std::move(array);
            break;
        }
        case Json::value_t::object: {
            ConfigValue::Object object;
            for (const auto& [key, member] : json.items()) {
                object.emplace_back(key, to_config(member, pointer + "/" + diag::escape_pointer(key)));
            }
            value.data = std::move(object);
            break;
        }
        default: break;
    }
    return value;
}

inline Json read_json(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error("cannot open " + path);
    }
    return Json::parse(file);
}

/// A path below tests/data.
inline std::string data_path(const std::string& name) {
    return std::string(SHARDPLAN_SOURCE_DIR) + "/tests/data/" + name;
}

}  // namespace shardplan::model
