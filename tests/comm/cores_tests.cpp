#include "comm/cores.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace shardplan;
using comm::RankCores;

TEST_CASE("cores are shared out among the ranks that may use them") {
    const std::vector<int> four = {0, 1, 2, 3};
    struct Case {
        std::vector<RankCores> ranks;
        std::vector<int> threads;
    };
    const std::vector<Case> cases = {
        {{{"a", four, 0.0}}, {4}},
        {{{"a", four, 0.0}, {"a", four, 0.0}}, {2, 2}},
        {{{"a", four, 0.0}, {"a", four, 0.0}, {"a", four, 0.0}}, {1, 1, 1}},
        {{{"a", {0}, 0.0}, {"a", {1, 2, 3}, 0.0}}, {1, 3}},                         // bound
        {{{"a", {0, 1}, 0.0}, {"a", {0, 1}, 0.0}, {"b", {0, 1}, 0.0}}, {1, 1, 2}},  // two hosts
        {{{"a", four, 2.0}}, {2}},                                                  // a container with half of the time
        {{{"a", four, 0.5}}, {1}},
        {{{"a", four, 3.0}, {"a", four, 3.0}}, {1, 1}},
    };
    for (const Case& example : cases) {
        std::vector<std::int64_t> threads;
        for (std::size_t rank = 0; rank < example.ranks.size(); ++rank) {
            threads.push_back(comm::fair_threads(example.ranks, static_cast<std::int64_t>(rank)));
            CHECK(threads.back() == example.threads[rank]);
        }
        CHECK_FALSE(comm::oversubscribed(example.ranks, threads));
        threads.back() += 3;
        CHECK(comm::oversubscribed(example.ranks, threads));
    }
}

TEST_CASE("cores as text") {
    CHECK(comm::cores_text(std::array{0}) == "0");
    CHECK(comm::cores_text(std::array{0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
    CHECK(comm::cores_text({}).empty());
}

TEST_CASE("this process has cores") {
    const auto world = comm::make_self_world();
    const std::vector<RankCores> ranks = comm::gather_cores(*world);
    REQUIRE(ranks.size() == 1);
    CHECK(ranks[0].cores == comm::own_cores().cores);
    CHECK_FALSE(ranks[0].cores.empty());
    CHECK(comm::fair_threads(ranks, 0) >= 1);
}
