#include <doctest/doctest.h>

#include <set>

#include "plan/token_order.h"

namespace shardplan::plan {

using base::Interval;
using base::Run;

TEST_CASE("the order of small sequences, by hand") {
    const TokenOrder plain;
    CHECK(plain.plain());
    CHECK(plain.position(5) == 5);
    CHECK(plain.runs({3, 9}) == std::vector<Run>{{0, 6, 3}});
    CHECK(plain.runs({3, 3}).empty());

    const TokenOrder two = TokenOrder::zigzag(8, 2);  // 0 1 6 7 | 2 3 4 5
    CHECK_FALSE(two.plain());
    CHECK(two.runs({0, 4}) == std::vector<Run>{{0, 2, 0}, {2, 2, 6}});
    CHECK(two.runs({4, 8}) == std::vector<Run>{{0, 4, 2}});  // chunks 1 and 2 are neighbours
    CHECK(two.runs({1, 3}) == std::vector<Run>{{0, 1, 1}, {1, 1, 6}});
    CHECK(two.runs({0, 8}) == std::vector<Run>{{0, 2, 0}, {2, 2, 6}, {4, 4, 2}});
}

TEST_CASE("every position has one slot, runs say the same as position(), and causal work is equal") {
    for (const std::int64_t parts : {2, 3, 4, 7, 16}) {
        for (const std::int64_t chunk : {1, 2, 5}) {
            const std::int64_t length = 2 * parts * chunk;
            const TokenOrder order = TokenOrder::zigzag(length, parts);
            std::set<std::int64_t> positions;
            for (std::int64_t part = 0; part < parts; ++part) {
                const Interval slots{part * 2 * chunk, (part + 1) * 2 * chunk};
                std::int64_t visible_keys = 0;
                std::int64_t next = 0;
                for (const Run& run : order.runs(slots)) {
                    CHECK(run.first == next);
                    next += run.count;
                    for (std::int64_t i = 0; i < run.count; ++i) {
                        CHECK(order.position(slots.begin + run.first + i) == run.position + i);
                        positions.insert(run.position + i);
                        visible_keys += run.position + i + 1;
                    }
                }
                CHECK(next == 2 * chunk);
                CHECK(visible_keys * parts == length * (length + 1) / 2);
            }
            CHECK(std::ssize(positions) == length);
            CHECK(*positions.rbegin() == length - 1);
        }
    }
}

}  // namespace shardplan::plan
