// Checked 64-bit arithmetic for sizes, counts and bytes.
// Every function throws OverflowError instead of wrapping; the planner turns it into one diagnostic.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace shardplan::base {

struct OverflowError : std::overflow_error {
    using std::overflow_error::overflow_error;
};

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) {
        throw OverflowError("product does not fit in 64 bits");
    }
    return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) {
        throw OverflowError("sum does not fit in 64 bits");
    }
    return result;
}

/// Smallest integer >= a / b. @pre a >= 0, b > 0
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace shardplan::base
