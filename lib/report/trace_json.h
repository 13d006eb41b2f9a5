// What ranks did when, as a Chrome trace (chrome://tracing, Perfetto): one process per rank, with a track for whole
// steps of the model, one for computation and one for communication. Names, layers, local shapes, bytes and flops come
// from the plan.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "plan/plan.h"

namespace shardplan::report {

struct TraceSpan {
    enum class Kind : std::uint8_t { step, receive, send, model_step };
    Kind kind = Kind::step;
    std::int32_t use = -1;   ///< index into Plan::sequence; steps only
    std::int32_t step = -1;  ///< of the block; steps only
    std::int32_t pass = 0;   ///< of the loop that the step is in
    std::int32_t run = 0;    ///< number of the step of the model (or of its micro-batch)
    std::int64_t start_nanoseconds = 0;
    std::int64_t nanoseconds = 0;
};

/// `ranks`: the spans of each rank, all on one clock.
void write_trace_json(std::ostream& out, const plan::Plan& plan, const std::vector<std::vector<TraceSpan>>& ranks);

}  // namespace shardplan::report
