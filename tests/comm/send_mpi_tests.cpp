// Sends between two members of a group, as stages of a pipeline make them.
#include <doctest/doctest.h>

#include <vector>

#include "comm/communicator.h"
#include "support/mpi_world.h"

using namespace shardplan;

namespace {

constexpr std::int64_t count = 3;

tensor::View view(std::vector<float>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), tensor::DType::f32, {std::ssize(values)}};
}

}  // namespace

TEST_CASE("what a stage sends arrives at the next one, in order; only the sender's bytes count") {
    comm::World& world = test::mpi_world();
    const auto groups = world.groups(mesh::Mesh({{"pp", world.size()}}));
    mesh::AxisList axis;
    axis.push_back(mesh::AxisId{0});
    const std::int64_t me = world.rank();
    for (int message = 0; message < 4; ++message) {
        std::vector<float> values(count, static_cast<float>(message));
        if (me > 0) {
            groups->receive(axis, me - 1, view(values));
        }
        CHECK(values == std::vector<float>(count, static_cast<float>(message) + static_cast<float>(me) * 10.0F));
        for (float& value : values) {
            value += 10.0F;
        }
        if (me + 1 < world.size()) {
            groups->send(axis, me + 1, view(values));
        }
    }
    const bool first = me == 0;
    const bool last = me + 1 == world.size();
    const comm::Traffic& traffic = groups->traffic(mesh::CollectiveKind::send);
    CHECK(traffic.calls == 4 * ((first ? 0 : 1) + (last ? 0 : 1)));
    CHECK(traffic.wire_bytes == (last ? 0 : 4 * count * 4));
}

TEST_CASE("nobody sends to itself or beyond the group") {
    comm::World& world = test::mpi_world();
    const auto groups = world.groups(mesh::Mesh({{"pp", world.size()}}));
    mesh::AxisList axis;
    axis.push_back(mesh::AxisId{0});
    std::vector<float> values(count);
    for (const std::int64_t position : {world.rank(), std::int64_t{-1}, world.size()}) {
        CHECK_THROWS_AS(groups->send(axis, position, view(values)), std::runtime_error);
        CHECK_THROWS_AS(groups->receive(axis, position, view(values)), std::runtime_error);
    }
}
