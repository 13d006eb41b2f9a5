#include "exec/tokens.h"

#include <doctest/doctest.h>

#include <set>

using namespace shardplan;

TEST_CASE("seeded tokens are in range, differ between seeds and sequences, and grow at the end") {
    const exec::TokenBatch tokens = exec::seeded_tokens(3, 4, 50, 97);
    std::set<std::int32_t> seen(tokens.ids.begin(), tokens.ids.end());
    CHECK(tokens.ids.size() == 200);
    CHECK(*seen.begin() >= 0);
    CHECK(*seen.rbegin() < 97);
    CHECK(seen.size() > 60);
    const exec::TokenBatch longer = exec::seeded_tokens(3, 4, 60, 97);
    CHECK(longer.slice({0, 50}).ids == tokens.ids);
    CHECK(exec::seeded_tokens(4, 4, 50, 97).ids != tokens.ids);
    CHECK(tokens.at(0, 0) != tokens.at(1, 0));
}

TEST_CASE("a slice takes the same positions of every sequence") {
    const exec::TokenBatch tokens{2, 3, {1, 2, 3, 4, 5, 6}};
    const exec::TokenBatch part = tokens.slice({1, 3});
    CHECK(part.batch == 2);
    CHECK(part.length == 2);
    CHECK(part.ids == std::vector<std::int32_t>{2, 3, 5, 6});
    CHECK(tokens.slice({1, 1}).ids.empty());
}
