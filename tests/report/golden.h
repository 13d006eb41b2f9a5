// Texts kept as files in tests/report/golden. SHARDPLAN_UPDATE_GOLDEN=1 writes them anew: read the diff before you
// commit it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace report_tests {

inline std::string golden(const std::string& name, const std::string& actual) {
    const std::string path = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/report/golden/" + name;
    if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path) << actual;
    }
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// The first line in which two texts differ, for messages; "" when they are equal.
inline std::string first_difference(const std::string& expected, const std::string& actual) {
    std::istringstream left(expected);
    std::istringstream right(actual);
    std::string a;
    std::string b;
    for (int line = 1;; ++line) {
        const bool more_left = static_cast<bool>(std::getline(left, a));
        const bool more_right = static_cast<bool>(std::getline(right, b));
        if (!more_left && !more_right) {
            return expected == actual ? "" : "the ends of the texts differ";
        }
        if (more_left != more_right || a != b) {
            return "line " + std::to_string(line) + "\nexpected: " + (more_left ? a : "(end)") +
                   "\nactual:   " + (more_right ? b : "(end)");
        }
    }
}

}  // namespace report_tests
