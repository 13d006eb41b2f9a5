#include "mesh/mesh.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <string>

using namespace shardplan::mesh;

namespace {

struct Case {
    Mesh mesh;
    AxisList axes;  ///< some of the axes, in any order
};

/// A mesh of 1 to 5 axes of size 1 to 4.
Case any_case() {
    std::vector<Axis> axes;
    std::vector<std::pair<int, int>> keys;
    const int count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < count; ++i) {
        axes.push_back({fmt::format("axis{}", i), *rc::gen::inRange<std::int64_t>(1, 5)});
        keys.emplace_back(*rc::gen::inRange(0, 1000), i);
    }
    std::sort(keys.begin(), keys.end());
    Case result{Mesh(axes), {}};
    const int chosen = *rc::gen::inRange(0, count + 1);
    for (int i = 0; i < chosen; ++i) {
        result.axes.push_back(AxisId{static_cast<std::uint8_t>(keys[static_cast<std::size_t>(i)].second)});
    }
    RC_LOG() << count << " axes, " << result.mesh.device_count() << " devices, " << chosen << " chosen\n";
    return result;
}

std::int64_t any_rank(const Mesh& mesh) {
    return *rc::gen::inRange<std::int64_t>(0, mesh.device_count());
}

}  // namespace

TEST_CASE("the last axis varies fastest") {
    const Mesh mesh({{"dp", 2}, {"sp", 1}, {"tp", 3}});
    const std::vector<std::vector<std::int64_t>> coordinates = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2},
                                                                {1, 0, 0}, {1, 0, 1}, {1, 0, 2}};
    REQUIRE(mesh.device_count() == 6);
    for (std::size_t rank = 0; rank < coordinates.size(); ++rank) {
        CHECK(mesh.coordinates(static_cast<std::int64_t>(rank)) == coordinates[rank]);
        CHECK(mesh.rank_of(coordinates[rank]) == static_cast<std::int64_t>(rank));
    }
}

TEST_CASE("a mesh knows its axes") {
    const Mesh mesh({{"dp", 2}, {"sp", 1}, {"tp", 3}});
    const AxisId tp{2};
    CHECK(mesh.axis_count() == 3);
    CHECK(mesh.find("tp") == tp);
    CHECK_FALSE(mesh.find("ep").has_value());
    CHECK_FALSE(mesh.find("").has_value());
    CHECK(mesh.name(tp) == "tp");
    CHECK(mesh.size(tp) == 3);
    CHECK(mesh.coordinate(4, tp) == 1);
    CHECK(nontrivial_axes(mesh) == AxisSet{AxisId{0}, tp});
    CHECK(mesh == Mesh({{"dp", 2}, {"sp", 1}, {"tp", 3}}));
    CHECK_FALSE(mesh == Mesh({{"tp", 3}, {"sp", 1}, {"dp", 2}}));
    CHECK(Mesh().device_count() == 1);
}

TEST_CASE("the order of the axes decides positions, the set of axes decides members") {
    const Mesh mesh({{"dp", 2}, {"tp", 3}});
    const AxisId dp{0};
    const AxisId tp{1};
    CHECK(mesh.group(4, {dp, tp}) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
    CHECK(mesh.group(4, {tp, dp}) == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
    CHECK(mesh.position(4, {tp, dp}) == 3);
    CHECK(mesh.groups({tp}) == std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {3, 4, 5}});
    CHECK(mesh.groups({dp}) == std::vector<std::vector<std::int64_t>>{{0, 3}, {1, 4}, {2, 5}});
    CHECK(mesh.groups({}).size() == 6);
}

TEST_CASE("ranks and coordinates, ranks and positions are inverse to each other") {
    CHECK(rc::check("coordinates", [] {
        const Mesh mesh = any_case().mesh;
        const std::int64_t rank = any_rank(mesh);
        RC_ASSERT(mesh.rank_of(mesh.coordinates(rank)) == rank);
    }));
    CHECK(rc::check("positions", [] {
        const auto [mesh, axes] = any_case();
        const std::int64_t rank = any_rank(mesh);
        const auto position = *rc::gen::inRange<std::int64_t>(0, mesh.size(axes));
        const std::int64_t moved = mesh.rank_at(rank, axes, position);
        RC_ASSERT(mesh.position(moved, axes) == position);
        RC_ASSERT(mesh.rank_at(moved, axes, mesh.position(rank, axes)) == rank);
        for (int i = 0; i < mesh.axis_count(); ++i) {
            const AxisId id{static_cast<std::uint8_t>(i)};
            RC_ASSERT(axes.set().contains(id) || mesh.coordinate(moved, id) == mesh.coordinate(rank, id));
        }
    }));
}

TEST_CASE("a group is the same list for all its members, in order of position") {
    CHECK(rc::check("group", [] {
        const auto [mesh, axes] = any_case();
        const std::int64_t rank = any_rank(mesh);
        const auto group = mesh.group(rank, axes);
        RC_ASSERT(static_cast<std::int64_t>(group.size()) == mesh.size(axes.set()));
        RC_ASSERT(group[static_cast<std::size_t>(mesh.position(rank, axes))] == rank);
        for (std::size_t i = 0; i < group.size(); ++i) {
            RC_ASSERT(mesh.position(group[i], axes) == static_cast<std::int64_t>(i));
            RC_ASSERT(mesh.group(group[i], axes) == group);
        }
    }));
}

TEST_CASE("groups partition the ranks and are ordered by their first rank") {
    CHECK(rc::check("partition", [] {
        const auto [mesh, axes] = any_case();
        std::vector<std::int64_t> members;
        std::int64_t before = -1;
        for (const auto& group : mesh.groups(axes)) {
            RC_ASSERT(static_cast<std::int64_t>(group.size()) == mesh.size(axes));
            RC_ASSERT(group.front() > before);
            before = group.front();
            members.insert(members.end(), group.begin(), group.end());
        }
        std::sort(members.begin(), members.end());
        std::vector<std::int64_t> ranks(static_cast<std::size_t>(mesh.device_count()));
        std::iota(ranks.begin(), ranks.end(), 0);
        RC_ASSERT(members == ranks);
    }));
}
