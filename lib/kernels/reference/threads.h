// When a loop is worth the threads: starting them costs about a microsecond, and far more on a machine that is busy.
#pragma once

#include <cstdint>

namespace shardplan::kernels {

/// `work` in element reads or multiply-adds.
inline bool worth_threads(std::int64_t work) {
    return work >= 32768;
}

}  // namespace shardplan::kernels
