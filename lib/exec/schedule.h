// What follows from a plan for one rank before anything runs: which index ranges of each value it holds, when memory
// comes and goes, and under which name the time of a step is booked. Pure; made once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/interval.h"
#include "exec/linear_step.h"
#include "plan/plan.h"

namespace shardplan::exec {

struct StepSchedule {
    std::vector<plan::ValueId> allocate;  ///< outputs with memory of their own
    std::vector<plan::ValueId> release;   ///< owners of memory that is free after the step
    std::optional<LinearStep> linear;
    std::vector<base::Interval> experts;  ///< dispatch_tokens: those of each member of the group
    std::size_t timer = 0;                ///< index into Schedule::timers
};

struct BlockSchedule {
    std::vector<std::vector<base::Interval>> ranges;  ///< per value, per dimension
    std::vector<plan::ValueId> owner;                 ///< per value: the value whose memory it uses; itself if its own
    std::vector<plan::ValueId> token_inputs;          ///< values that hold token ids
    std::vector<StepSchedule> steps;
};

struct Timer {
    std::string name;  ///< kind of op, of compute step or of collective
    bool collective = false;
    friend bool operator==(const Timer&, const Timer&) = default;
};

struct Schedule {
    std::vector<BlockSchedule> blocks;
    std::vector<Timer> timers;
};

/// Throws std::logic_error when the plan's local shapes are not those of its layouts.
Schedule make_schedule(const plan::Plan& plan, std::int64_t rank);

}  // namespace shardplan::exec
