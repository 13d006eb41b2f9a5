// Tables of expectations: one line per row, columns separated by tabs, "#" lines are remarks, the first line names the
// columns.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace diagnostics_tests {

inline const std::string source_dir = SHARDPLAN_SOURCE_DIR;

inline std::string read_text(const std::string& path) {
    const std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t at; (at = text.find(separator, begin)) != std::string::npos; begin = at + separator.size()) {
        parts.push_back(text.substr(begin, at - begin));
    }
    parts.push_back(text.substr(begin));
    return parts;
}

/// Rows of exactly `columns` columns.
inline std::vector<std::vector<std::string>> read_table(const std::string& name, std::size_t columns) {
    std::vector<std::vector<std::string>> rows;
    bool header = true;
    std::istringstream lines(read_text(source_dir + "/tests/diagnostics/" + name));
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        std::vector<std::string> row = split(line, "\t");
        if (row.size() != columns) {
            throw std::runtime_error(name + ": not " + std::to_string(columns) + " columns: " + line);
        }
        if (!header) {
            rows.push_back(std::move(row));
        }
        header = false;
    }
    return rows;
}

}  // namespace diagnostics_tests
