// What all devices together compute and read in one step of the model: the yardsticks its time is put beside.
// Knows nothing of caches of a processor: bytes are those that must come from memory once per step.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardplan::plan {

struct StepWork {
    double flops = 0.0;  ///< a multiply-add counted as two; what several devices repeat is counted on each
    /// Parameters that are read whole (not a table of embeddings of which only some rows are), and in decode the rows
    /// of the caches that hold a token once the step has added its own, of every device. 0 where the data decide what
    /// is read (experts).
    std::int64_t bytes = 0;
};

StepWork step_work(const Plan& plan);

}  // namespace shardplan::plan
