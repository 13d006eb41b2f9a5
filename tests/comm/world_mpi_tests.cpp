#include <doctest/doctest.h>

#include "base/checked.h"
#include "support/mpi_world.h"

using namespace shardplan;
using comm::WorldOp;

TEST_CASE("strings of different lengths go to all and come from all") {
    comm::World& world = test::mpi_world();
    CHECK(comm::launched_by_mpirun());
    CHECK(world.local_size() == world.size());
    CHECK(world.local_rank() == world.rank());

    std::string text = world.rank() == 0 ? std::string("from\0rank 0", 11) : "something longer than that";
    world.broadcast(text);
    CHECK(text == std::string("from\0rank 0", 11));
    std::string empty = world.rank() == 0 ? "" : "x";
    world.broadcast(empty);
    CHECK(empty.empty());

    const auto all = world.gather(std::string(static_cast<std::size_t>(world.rank() * 70000), 'r'));
    CHECK(all.size() == static_cast<std::size_t>(world.rank() == 0 ? world.size() : 0));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        CHECK(all[rank] == std::string(rank * 70000, 'r'));
    }
}

TEST_CASE("small vectors are combined in order of rank") {
    comm::World& world = test::mpi_world();
    const std::int64_t n = world.size();
    std::vector<std::int64_t> numbers = {world.rank(), 1, -world.rank()};
    auto sums = numbers;
    auto largest = numbers;
    auto smallest = numbers;
    world.all_reduce(std::span(sums), WorldOp::sum);
    world.all_reduce(std::span(largest), WorldOp::max);
    world.all_reduce(std::span(smallest), WorldOp::min);
    CHECK(sums == std::vector<std::int64_t>{n * (n - 1) / 2, n, -n * (n - 1) / 2});
    CHECK(largest == std::vector<std::int64_t>{n - 1, 1, 0});
    CHECK(smallest == std::vector<std::int64_t>{0, 1, 1 - n});

    double expected = 0.1;
    for (std::int64_t rank = 1; rank < n; ++rank) {
        expected += 0.1 * static_cast<double>(rank + 1);
    }
    double sum = 0.1 * static_cast<double>(world.rank() + 1);
    world.all_reduce(std::span(&sum, 1), WorldOp::sum);
    CHECK(sum == expected);

    std::int64_t huge = std::int64_t{1} << 62;
    CHECK_THROWS_AS(world.all_reduce(std::span(&huge, 1), WorldOp::sum), base::OverflowError);
    std::vector<std::int64_t> nothing;
    world.all_reduce(std::span(nothing), WorldOp::sum);
}

TEST_CASE("one rank is enough to disagree") {
    comm::World& world = test::mpi_world();
    const bool last = world.rank() == world.size() - 1;
    CHECK(world.agree(true));
    CHECK_FALSE(world.agree(!last));
    CHECK(world.same_everywhere(0xffffffffffffffffULL));
    CHECK_FALSE(world.same_everywhere(last ? 1 : 0));
}
