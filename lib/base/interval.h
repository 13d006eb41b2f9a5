// A half-open range of indices [begin, end); the only interval type of the project.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardplan::base {

struct Interval {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t size() const { return end - begin; }
    bool empty() const { return end <= begin; }
    bool contains(std::int64_t index) const { return index >= begin && index < end; }
    friend bool operator==(const Interval&, const Interval&) = default;
};

inline Interval intersect(Interval a, Interval b) {
    return {std::max(a.begin, b.begin), std::max(std::max(a.begin, b.begin), std::min(a.end, b.end))};
}

}  // namespace shardplan::base
