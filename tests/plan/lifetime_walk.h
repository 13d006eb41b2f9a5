// The life of every value of a block, step by step, with counts of our own: for the tests of what holds in every plan.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "model/op_rule.h"
#include "plan/arena.h"
#include "plan/plan.h"

namespace shardplan::plan {

inline std::vector<ValueId> inputs_of(const Step& step) {
    return step.compute ? step.compute->inputs : std::vector<ValueId>{step.collective->input};
}

inline std::vector<ValueId> outputs_of(const Step& step) {
    return step.compute ? step.compute->outputs : std::vector<ValueId>{step.collective->output};
}

inline bool reads(const Step& step, ValueId id) {
    const std::vector<ValueId> inputs = inputs_of(step);
    return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
}

/// Loops stand together, with one number of passes; what they free is not needed in the next pass.
inline void check_loops(const BlockPlan& block) {
    std::set<int> seen;
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const Step& step = block.steps[i];
        CHECK((step.loop != 0 || step.times == 1));
        CHECK(step.times >= 1);
        if (step.loop != 0 && i > 0 && block.steps[i - 1].loop == step.loop) {
            CHECK(step.times == block.steps[i - 1].times);
        } else if (step.loop != 0) {
            CHECK(seen.insert(step.loop).second);
        }
        if (step.loop != 0) {
            CHECK(defined_values(step).empty());
            CHECK((step.last_use.empty() || i + 1 == block.steps.size() || block.steps[i + 1].loop != step.loop));
        }
    }
}

/// Runs through the steps of a block as the executor does, with a set of what is allocated.
class Walk {
public:
    explicit Walk(const BlockPlan& block) : block_(block) {
        for (std::size_t i = 0; i < block.values.size(); ++i) {
            const ValueKind kind = block.values[i].kind;
            if (kind == ValueKind::parameter || kind == ValueKind::cache || kind == ValueKind::input) {
                defined_.insert(static_cast<ValueId>(i));
            }
            if (kind == ValueKind::input) {
                live_.insert(static_cast<ValueId>(i));
            }
        }
    }

    void run() {
        measure(0);
        for (const Step& step : block_.steps) {
            CHECK(step.compute.has_value() != step.collective.has_value());
            for (const ValueId id : inputs_of(step)) {
                CHECK_MESSAGE(defined_.contains(id), value(id).name << " is used before it is defined");
                CHECK_MESSAGE(readable(id), value(id).name << " is used after its memory was freed");
            }
            for (const ValueId id : outputs_of(step)) {
                if (!reads(step, id)) {
                    define(id);
                }
            }
            measure(step.collective ? step.collective->staging_bytes : 0);
            check_places(step);
            for (const ValueId id : step.last_use) {
                CHECK_MESSAGE(live_.erase(id) == 1, value(id).name << " is freed twice, or never was allocated");
            }
        }
        const ValueId output = root(block_.output);
        CHECK(live_ == (stored(output) ? std::set<ValueId>{} : std::set<ValueId>{output}));
        CHECK(peak_activations_ == block_.peak_activation_bytes);
        CHECK(peak_communication_ == block_.peak_communication_bytes);
        check_ends();
    }

    /// Values that no step defines: those inside a fused step.
    std::size_t undefined() const { return block_.values.size() - defined_.size(); }

private:
    const Value& value(ValueId id) const { return block_.values[static_cast<std::size_t>(id)]; }
    ValueId root(ValueId id) const { return value(id).alias_of < 0 ? id : value(id).alias_of; }
    bool stored(ValueId id) const {
        return value(id).kind == ValueKind::parameter || value(id).kind == ValueKind::cache;
    }
    bool readable(ValueId id) const { return stored(root(id)) || live_.contains(root(id)); }

    void define(ValueId id) {
        if (value(id).kind == ValueKind::cache) {
            return;  // written in place
        }
        CHECK_MESSAGE(defined_.insert(id).second, value(id).name << " is defined twice");
        if (root(id) == id) {
            live_.insert(id);
        } else {
            CHECK_MESSAGE(readable(id), value(id).name << " shares memory that was freed");
        }
    }

    void measure(std::int64_t staging) {
        std::int64_t activations = 0;
        std::int64_t communication = staging;
        for (const ValueId id : live_) {
            (value(id).kind == ValueKind::gathered ? communication : activations) += value(id).local_bytes;
        }
        peak_activations_ = std::max(peak_activations_, activations);
        peak_communication_ = std::max(peak_communication_, communication);
    }

    /// What is needed in a step lies side by side within the arena.
    void check_places(const Step& step) {
        std::map<std::int64_t, std::int64_t> places;  // offset -> bytes
        std::int64_t sum = 0;
        const auto add = [&](std::int64_t offset, std::int64_t bytes) {
            CHECK(offset >= 0);
            CHECK(offset % arena_alignment == 0);
            CHECK(offset + bytes <= block_.arena_bytes);
            CHECK_MESSAGE((bytes == 0 || places.emplace(offset, bytes).second), "two at " << offset);
            sum += bytes;
        };
        for (const ValueId id : live_) {
            add(value(id).offset, value(id).local_bytes);
        }
        if (step.collective && step.collective->staging_bytes > 0) {
            add(step.collective->staging_offset, step.collective->staging_bytes);
        }
        if (step.compute && step.compute->scratch_bytes > 0) {
            add(step.compute->scratch_offset, step.compute->scratch_bytes);
        }
        std::int64_t end = 0;
        for (const auto& [offset, bytes] : places) {
            CHECK(offset >= end);
            end = offset + bytes;
        }
        needed_ = std::max(needed_, sum);
    }

    /// Input and output at the ends; little room is lost between what is needed.
    void check_ends() const {
        if (block_.input) {
            CHECK(value(*block_.input).offset == 0);
        }
        const ValueId output = root(block_.output);
        if (output != block_.input && !stored(output)) {
            CHECK(value(output).offset + arena_size(value(output).local_bytes) == block_.arena_bytes);
        }
        CHECK(block_.arena_bytes % arena_alignment == 0);
        CHECK(block_.arena_bytes >= needed_);
        const auto values = static_cast<std::int64_t>(block_.values.size() + block_.steps.size());
        CHECK(block_.arena_bytes <= needed_ * 3 / 2 + values * arena_alignment);
    }

    const BlockPlan& block_;
    std::int64_t needed_ = 0;
    std::set<ValueId> defined_;
    std::set<ValueId> live_;
    std::int64_t peak_activations_ = 0;
    std::int64_t peak_communication_ = 0;
};

}  // namespace shardplan::plan
