// When a rank ran which step: recorded by the executor where it is asked to, collected on rank 0 with all clocks set to
// that of rank 0. Knows nothing of how a trace is written down.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace shardplan::exec {

/// What an event is, where it is not a step of a block (those are numbered from 0).
enum TracePoint : std::int32_t {
    trace_receive = -1,  ///< of hidden states from the stage before
    trace_send = -2,
    trace_model_step = -3,  ///< all of one step of the model, or of one micro-batch
};

struct TraceEvent {
    std::int32_t use = -1;   ///< index into Plan::sequence; -1 outside
    std::int32_t step = 0;   ///< of the block, or a TracePoint
    std::int32_t pass = 0;   ///< of the loop that the step is in
    std::int32_t run = 0;    ///< counts Executor::run from 0
    std::int64_t start = 0;  ///< nanoseconds of the steady clock; collected: since the first event of all ranks
    std::int64_t duration = 0;
};

class Trace {
public:
    using Clock = std::chrono::steady_clock;

    void begin_run() { ++run_; }
    void add(std::int32_t use, std::int32_t step, std::int64_t pass, Clock::time_point start, Clock::time_point end);
    /// Forgets what was recorded: runs that warm up.
    void clear();
    const std::vector<TraceEvent>& events() const { return events_; }

private:
    std::vector<TraceEvent> events_;
    std::int32_t run_ = -1;
};

/// Nanoseconds to add to this rank's steady clock to get that of rank 0, from the shortest of a few ping-pongs; off by
/// half of what that one took at most. Collective.
std::int64_t clock_offset(comm::World& world);

/// On rank 0 the events of every rank, on one clock; empty elsewhere. Collective.
std::vector<std::vector<TraceEvent>> gather_trace(comm::World& world, const Trace& own);

}  // namespace shardplan::exec
