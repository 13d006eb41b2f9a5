#include "plan/arena.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"

namespace shardplan::plan {
namespace {

/// Memory that is needed from the first step to the last, both included.
struct Item {
    std::int64_t* offset = nullptr;
    std::int64_t size = 0;
    std::size_t first = 0;
    std::size_t last = 0;

    bool meets(const Item& other) const { return first <= other.last && other.first <= last; }
};

/// Steps that are executed as one need all of their memory at once.
std::pair<std::size_t, std::size_t> executed_with(const BlockPlan& block, std::size_t step) {
    const int joined = block.steps[step].joined;
    std::size_t first = step;
    std::size_t last = step;
    while (joined != 0 && first > 0 && block.steps[first - 1].joined == joined) {
        --first;
    }
    while (joined != 0 && last + 1 < block.steps.size() && block.steps[last + 1].joined == joined) {
        ++last;
    }
    return {first, last};
}

class ArenaLayout {
public:
    explicit ArenaLayout(BlockPlan& block) : block_(block) {
        find_values();
        find_temporaries();
    }

    void run() {
        constexpr std::array orders = {&ArenaLayout::larger, &ArenaLayout::outlives, &ArenaLayout::earlier};
        std::vector<std::int64_t> best;
        for (const auto order : orders) {
            const std::int64_t bytes = place(order);
            if (best.empty() || bytes < block_.arena_bytes) {
                block_.arena_bytes = bytes;
                best = offsets();
            }
        }
        for (std::size_t i = 0; i < items_.size(); ++i) {
            *items_[i].offset = best[i];
        }
        if (output_ != none) {
            *items_[output_].offset = block_.arena_bytes - items_[output_].size;
        }
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    void find_values() {
        const std::size_t end = block_.steps.size();
        std::map<ValueId, std::size_t> freed;
        for (std::size_t s = 0; s < end; ++s) {
            for (const ValueId id : block_.steps[s].last_use) {
                freed[id] = executed_with(block_, s).second;
            }
        }
        const ValueId output = memory_owner(block_, block_.output);
        const auto add = [&](ValueId id, std::size_t first) {
            Value& value = block_.values[static_cast<std::size_t>(id)];
            if (value.alias_of >= 0 || value.kind == ValueKind::parameter || value.kind == ValueKind::cache) {
                return;
            }
            if (id == block_.input) {
                input_ = items_.size();
            } else if (id == output) {
                output_ = items_.size();
            }
            const auto last = freed.find(id);
            items_.push_back(
                {&value.offset, arena_size(value.local_bytes), first, last == freed.end() ? end : last->second});
        };
        for (std::size_t v = 0; v < block_.values.size(); ++v) {
            if (block_.values[v].kind == ValueKind::input) {
                add(static_cast<ValueId>(v), 0);
            }
        }
        for (std::size_t s = 0; s < end; ++s) {
            for (const ValueId id : defined_values(block_.steps[s])) {
                add(id, executed_with(block_, s).first);
            }
        }
    }

    void find_temporaries() {
        for (std::size_t s = 0; s < block_.steps.size(); ++s) {
            Step& step = block_.steps[s];
            const auto [first, last] = executed_with(block_, s);
            if (step.collective && step.collective->staging_bytes > 0) {
                items_.push_back(
                    {&step.collective->staging_offset, arena_size(step.collective->staging_bytes), first, last});
            } else if (step.compute && step.compute->scratch_bytes > 0) {
                items_.push_back({&step.compute->scratch_offset, arena_size(step.compute->scratch_bytes), first, last});
            }
        }
    }

    bool larger(std::size_t a, std::size_t b) const { return items_[a].size > items_[b].size; }
    /// Those that live on beside the output, which must lie behind them, come first.
    bool outlives(std::size_t a, std::size_t b) const {
        const bool one = output_ != none && items_[a].meets(items_[output_]);
        const bool other = output_ != none && items_[b].meets(items_[output_]);
        return one != other ? one : larger(a, b);
    }
    bool earlier(std::size_t a, std::size_t b) const { return items_[a].first < items_[b].first; }

    /// Places all items in this order and returns the bytes that are needed.
    std::int64_t place(bool (ArenaLayout::*before)(std::size_t, std::size_t) const) {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (i != input_ && i != output_) {
                order.push_back(i);
            }
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return (this->*before)(a, b); });
        placed_.clear();
        if (input_ != none) {
            *items_[input_].offset = 0;
            placed_.push_back(input_);
        }
        for (const std::size_t item : order) {
            *items_[item].offset = best_gap(items_[item]);
            const auto place =
                std::lower_bound(placed_.begin(), placed_.end(), item,
                                 [&](std::size_t a, std::size_t b) { return *items_[a].offset < *items_[b].offset; });
            placed_.insert(place, item);
        }
        return needed();
    }

    /// The start of the smallest gap that fits between what is needed at the same time; else behind all of it.
    std::int64_t best_gap(const Item& item) const {
        std::int64_t end = 0;
        std::int64_t best = -1;
        std::int64_t smallest = 0;
        for (const std::size_t other : placed_) {
            if (!items_[other].meets(item)) {
                continue;
            }
            const std::int64_t gap = *items_[other].offset - end;
            if (gap >= item.size && (best < 0 || gap < smallest)) {
                best = end;
                smallest = gap;
            }
            end = std::max(end, base::checked_add(*items_[other].offset, items_[other].size));
        }
        return best < 0 ? end : best;
    }

    std::int64_t needed() const {
        std::int64_t bytes = output_ == none ? 0 : items_[output_].size;
        for (const std::size_t item : placed_) {
            const std::int64_t end = base::checked_add(*items_[item].offset, items_[item].size);
            const bool beside = output_ != none && items_[item].meets(items_[output_]);
            bytes = std::max(bytes, beside ? base::checked_add(end, items_[output_].size) : end);
        }
        return bytes;
    }

    std::vector<std::int64_t> offsets() const {
        std::vector<std::int64_t> result;
        for (const Item& item : items_) {
            result.push_back(*item.offset);
        }
        return result;
    }

    BlockPlan& block_;
    std::vector<Item> items_;
    std::vector<std::size_t> placed_;  ///< by offset
    std::size_t input_ = none;
    std::size_t output_ = none;  ///< of its own; none where it is in the input's memory
};

}  // namespace

void lay_out_arena(BlockPlan& block) {
    ArenaLayout(block).run();
}

}  // namespace shardplan::plan
