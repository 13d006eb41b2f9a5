#include "report/range_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace shardplan::report {
namespace {

/// How many numbers from `first` on keep the step between the first two.
template <class Number>
std::size_t run_length(const std::vector<Number>& numbers, std::size_t first) {
    std::size_t next = first + 1;
    while (next < numbers.size() && numbers[next] - numbers[next - 1] == numbers[first + 1] - numbers[first]) {
        ++next;
    }
    return next - first;
}

/// True when the last two numbers written alone and `next` would read as the start of a stepped run.
bool reads_as_stepped(const std::vector<int>& alone, int next) {
    const std::size_t n = alone.size();
    return n >= 2 && alone[n - 1] - alone[n - 2] == next - alone[n - 1];
}

}  // namespace

std::string fold_layers(const std::vector<int>& layers) {
    if (layers.size() < 2) {
        return layers.empty() ? "" : fmt::format("{}", layers[0]);
    }
    std::vector<std::string> parts;
    std::vector<int> alone;  // the numbers written alone since the last run
    for (std::size_t i = 0; i < layers.size();) {
        const std::size_t length = run_length(layers, i);
        const int step = i + 1 < layers.size() ? layers[i + 1] - layers[i] : 1;
        const bool folds = length >= (step == 1 ? 3U : 4U) && !reads_as_stepped(alone, layers[i]);
        if (!folds) {
            parts.push_back(fmt::format("{}", layers[i]));
            alone.push_back(layers[i]);
            ++i;
            continue;
        }
        const int last = layers[i + length - 1];
        parts.push_back(step == 1 ? fmt::format("{}..{}", layers[i], last)
                                  : fmt::format("{},{},{}..{}", layers[i], layers[i + 1], layers[i + 2], last));
        alone.clear();
        i += length;
    }
    return fmt::format("{{{}}}", fmt::join(parts, ","));
}

std::string fold_devices(const std::vector<std::int64_t>& devices) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < devices.size();) {
        const std::size_t length = run_length(devices, i);
        const std::int64_t step = i + 1 < devices.size() ? devices[i + 1] - devices[i] : 1;
        if (length >= (step == 1 ? 2U : 4U)) {
            const std::string stride = step == 1 ? "" : fmt::format(":{}", step);
            parts.push_back(fmt::format("{}-{}{}", devices[i], devices[i + length - 1], stride));
            i += length;
        } else {
            parts.push_back(fmt::format("{}", devices[i]));
            ++i;
        }
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

std::string folded_name(std::string_view name, const std::vector<int>& layers) {
    const std::size_t hole = name.find("{}");
    if (hole == std::string_view::npos || layers.empty() || layers.front() < 0) {
        return std::string(name);
    }
    return fmt::format("{}{}{}", name.substr(0, hole), fold_layers(layers), name.substr(hole + 2));
}

std::string interval_text(base::Interval interval) {
    return fmt::format("{}:{}", interval.begin, interval.end);
}

std::string intervals_text(const std::vector<base::Interval>& intervals) {
    std::vector<std::string> parts;
    for (const base::Interval interval : intervals) {
        parts.push_back(interval_text(interval));
    }
    return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace shardplan::report
