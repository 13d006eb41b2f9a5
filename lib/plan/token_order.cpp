#include "plan/token_order.h"

#include <algorithm>

namespace shardplan::plan {

TokenOrder TokenOrder::zigzag(std::int64_t length, std::int64_t parts) {
    TokenOrder order;
    order.parts_ = parts;
    order.chunk_ = length / (2 * parts);
    return order;
}

std::int64_t TokenOrder::position(std::int64_t slot) const {
    if (plain()) {
        return slot;
    }
    const std::int64_t part = slot / chunk_ / 2;
    const bool first_half = slot / chunk_ % 2 == 0;
    return (first_half ? part : 2 * parts_ - 1 - part) * chunk_ + slot % chunk_;
}

std::vector<base::Run> TokenOrder::runs(base::Interval slots) const {
    std::vector<base::Run> result;
    for (std::int64_t slot = slots.begin; slot < slots.end;) {
        const std::int64_t end = plain() ? slots.end : std::min(slots.end, (slot / chunk_ + 1) * chunk_);
        const std::int64_t start = position(slot);
        if (!result.empty() && result.back().position + result.back().count == start) {
            result.back().count += end - slot;
        } else {
            result.push_back({slot - slots.begin, end - slot, start});
        }
        slot = end;
    }
    return result;
}

}  // namespace shardplan::plan
