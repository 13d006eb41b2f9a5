#include "base/hash.h"

#include <doctest/doctest.h>

#include <set>

using namespace shardplan::base;

TEST_CASE("fnv1a gives the published values") {
    CHECK(fnv1a("") == 0xcbf29ce484222325ULL);
    CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cULL);
    CHECK(fnv1a("foobar") == 0x85944171f73967e8ULL);
    CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
    CHECK(fnv1a("\xff") != fnv1a("\x7f"));
}

TEST_CASE("splitmix64 gives the sequence of the generator seeded with 0") {
    constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
    CHECK(splitmix64(0) == 0xe220a8397b1dcdafULL);
    CHECK(splitmix64(step) == 0x6e789e6aa1b965f4ULL);
    CHECK(splitmix64(2 * step) == 0x06c45d188009454fULL);
}

TEST_CASE("splitmix64 maps different counters to different values") {
    std::set<std::uint64_t> values;
    for (std::uint64_t counter = 0; counter < 10000; ++counter) {
        values.insert(splitmix64(counter));
    }
    CHECK(values.size() == 10000);
}
