#include "exec/arena.h"

#include <fmt/format.h>

#include <stdexcept>

#include "plan/arena.h"

namespace shardplan::exec {

Arena::Arena(const plan::Plan& plan, const plan::Stage& stage, Allocator& allocator)
    : buffer_(allocator, Category::arena, stage.memory.arena), first_use_(stage.first), places_(plan.blocks.size()) {
    bool turned = false;
    for (int use = stage.first; use < stage.end; ++use) {
        const auto block = static_cast<std::size_t>(plan.sequence[static_cast<std::size_t>(use)].block);
        turned_.push_back(turned);
        if (places_[block][0].empty()) {
            place_values(plan.blocks[block], false, places_[block][0]);
            place_values(plan.blocks[block], true, places_[block][1]);
        }
        turned = turned != plan::turns_arena(plan.blocks[block]);
    }
}

std::byte* Arena::at(std::int64_t offset, std::int64_t bytes, bool turned) const {
    if (offset < 0) {
        return nullptr;
    }
    const std::int64_t size = plan::arena_size(bytes);
    if (offset + size > buffer_.bytes()) {
        throw std::logic_error(
            fmt::format("{} bytes at {} are outside of an arena of {}", size, offset, this->bytes()));
    }
    return buffer_.data() + (turned ? buffer_.bytes() - offset - size : offset);
}

void Arena::place_values(const plan::BlockPlan& block, bool turned, std::vector<std::byte*>& places) const {
    const plan::ValueId output = plan::turns_arena(block) ? plan::memory_owner(block, block.output) : -1;
    for (std::size_t v = 0; v < block.values.size(); ++v) {
        const plan::ValueId owner = plan::memory_owner(block, static_cast<plan::ValueId>(v));
        const plan::Value& value = block.values[static_cast<std::size_t>(owner)];
        std::int64_t offset = value.offset;
        if (owner == output && offset >= 0) {  // at the end, however large the arena is
            offset = buffer_.bytes() - plan::arena_size(value.local_bytes);
        }
        places.push_back(at(offset, value.local_bytes, turned));
    }
}

}  // namespace shardplan::exec
