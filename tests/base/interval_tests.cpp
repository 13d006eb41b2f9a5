#include "base/interval.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace shardplan::base;

TEST_CASE("an interval is half open") {
    const Interval interval{2, 5};
    CHECK(interval.size() == 3);
    CHECK_FALSE(interval.empty());
    CHECK(interval.contains(2));
    CHECK(interval.contains(4));
    CHECK_FALSE(interval.contains(1));
    CHECK_FALSE(interval.contains(5));
    CHECK(Interval{3, 3}.empty());
}

TEST_CASE("intersect") {
    struct Row {
        Interval a, b, expected;
    };
    const Row rows[] = {
        {{0, 4}, {2, 6}, {2, 4}}, {{0, 9}, {3, 5}, {3, 5}}, {{0, 2}, {2, 4}, {2, 2}},
        {{0, 1}, {5, 9}, {5, 5}}, {{0, 4}, {0, 4}, {0, 4}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.expected.begin);
        CHECK(intersect(row.a, row.b) == row.expected);
        CHECK(intersect(row.b, row.a) == row.expected);
    }
}

TEST_CASE("an intersection holds exactly what both hold") {
    CHECK(rc::check("membership", [] {
        const auto bound = rc::gen::inRange<std::int64_t>(0, 20);
        const Interval a{*bound, *bound};
        const Interval b{*bound, *bound};
        const Interval both = intersect(a, b);
        RC_ASSERT(both.size() >= 0);
        for (std::int64_t index = 0; index < 20; ++index) {
            RC_ASSERT(both.contains(index) == (a.contains(index) && b.contains(index)));
        }
    }));
}
