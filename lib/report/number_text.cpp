#include "report/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace shardplan::report {
namespace {

constexpr std::array<std::string_view, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};

/// Two decimals with the prefix that leaves less than 1000 after rounding.
std::string scaled(double value, std::string_view unit) {
    std::size_t prefix = 0;
    while (std::abs(value) >= 999.995 && prefix + 1 < prefixes.size()) {
        value /= 1000.0;
        ++prefix;
    }
    return fmt::format("{:.2f} {}{}", value, prefixes[prefix], unit);
}

}  // namespace

std::string count_text(std::int64_t count) {
    std::string text = fmt::format("{}", count);
    const std::size_t first = count < 0 ? 1 : 0;
    for (std::size_t i = text.size(); i > first + 3;) {
        i -= 3;
        text.insert(i, ",");
    }
    return text;
}

std::string bytes_text(std::int64_t bytes) {
    return bytes > -1000 && bytes < 1000 ? fmt::format("{} B", bytes) : scaled(static_cast<double>(bytes), "B");
}

std::string exact_bytes_text(std::int64_t bytes) {
    if (bytes > -1000 && bytes < 1000) {
        return bytes_text(bytes);
    }
    return fmt::format("{} ({} B)", bytes_text(bytes), count_text(bytes));
}

std::string flops_text(double flops) {
    return scaled(flops, "FLOP");
}

std::string seconds_text(double seconds) {
    if (std::abs(seconds) < 1e-3) {
        return fmt::format("{:.2f} us", seconds * 1e6);
    }
    return std::abs(seconds) < 1.0 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string percent_text(double fraction) {
    return fmt::format("{:.2f} %", fraction * 100.0);
}

std::string error_text(double value) {
    return fmt::format("{:.2e}", value);
}

}  // namespace shardplan::report
