#include "base/checked.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <optional>

using namespace shardplan::base;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
__extension__ using Wide = __int128;

template <typename Operation>
std::optional<std::int64_t> result_of(Operation operation, std::int64_t a, std::int64_t b) {
    try {
        return operation(a, b);
    } catch (const OverflowError&) {
        return std::nullopt;
    }
}

std::optional<std::int64_t> narrow(Wide value) {
    if (value > largest || value < smallest) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
}

}  // namespace

TEST_CASE("checked arithmetic throws at the ends of 64 bits") {
    CHECK(checked_mul(3037000499, 3037000499) == 9223372030926249001);
    CHECK_THROWS_AS(checked_mul(3037000500, 3037000500), OverflowError);
    CHECK_THROWS_AS(checked_mul(smallest, -1), OverflowError);
    CHECK(checked_mul(largest, 1) == largest);
    CHECK(checked_mul(largest, 0) == 0);
    CHECK(checked_add(largest - 1, 1) == largest);
    CHECK_THROWS_AS(checked_add(largest, 1), OverflowError);
    CHECK_THROWS_AS(checked_add(smallest, -1), OverflowError);
}

TEST_CASE("checked arithmetic agrees with 128 bits") {
    CHECK(rc::check("products and sums", [] {
        // Shifted, so that products on both sides of the limit come up.
        const auto a = *rc::gen::arbitrary<std::int64_t>() >> *rc::gen::inRange(0, 63);
        const auto b = *rc::gen::arbitrary<std::int64_t>() >> *rc::gen::inRange(0, 63);
        RC_ASSERT(result_of(checked_mul, a, b) == narrow(Wide{a} * b));
        RC_ASSERT(result_of(checked_add, a, b) == narrow(Wide{a} + b));
    }));
}

TEST_CASE("ceil_div is the least number of blocks that hold all") {
    CHECK(ceil_div(0, 4) == 0);
    CHECK(ceil_div(8, 4) == 2);
    CHECK(ceil_div(9, 4) == 3);
    CHECK(ceil_div(largest, 2) == largest / 2 + 1);
    CHECK(rc::check("least", [] {
        const auto a = *rc::gen::inRange<std::int64_t>(0, 1000000);
        const auto b = *rc::gen::inRange<std::int64_t>(1, 1000);
        const std::int64_t blocks = ceil_div(a, b);
        RC_ASSERT(blocks * b >= a);
        RC_ASSERT((blocks - 1) * b < a);
    }));
}
