// The recorded results of upstream in tests/data.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

/// Objects keep the order of the file.
inline nlohmann::ordered_json read_golden(const std::string& name) {
    std::ifstream file(SHARDPLAN_SOURCE_DIR "/tests/data/" + name);
    REQUIRE(file.good());
    return nlohmann::ordered_json::parse(file);
}

/// The records have Python's blanks after commas, our text has none.
inline std::string without_blanks(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
}
