// Shared memory and messages: the same bits from both, whatever the sizes; what happens where there is no room.
#include <doctest/doctest.h>

#include <numeric>

#include "scenes.h"

using namespace shardplan;
using comm::TransportChoice;
using mesh::CollectiveKind;
using mesh::Mesh;
using tensor::DType;
using tensor::Shape;
using test::Random;
using test::Tensor;

namespace {

const mesh::AxisList axes{mesh::AxisId{0}};
constexpr std::int64_t half = 4096;

std::unique_ptr<comm::Groups> groups_by(TransportChoice choice, std::int64_t half_bytes = half) {
    comm::World& world = test::mpi_world();
    return world.groups(Mesh({{"a", world.size()}}), {.transport = choice, .window_half_bytes = half_bytes});
}

Tensor contribution(DType dtype, const Shape& shape, std::uint64_t salt) {
    salt += static_cast<std::uint64_t>(test::mpi_world().rank() + 1) << 32;
    return test::generate(dtype, shape,
                          [&](const Shape& index) { return test::bits_of(dtype, test::hash_of(salt, index)); });
}

/// Elements around a boundary of the pieces, times the group's size.
Shape random_shape(Random& random, std::int64_t n, DType dtype) {
    const std::int64_t pieces = 1 + random.below(4);
    const std::int64_t boundary = pieces * half / tensor::size_of(dtype) / n;
    const std::int64_t elements = std::max<std::int64_t>(1, boundary + random.below(9) - 4);
    switch (random.below(3)) {
        case 0: return {n, n * elements};
        case 1: return {3, n * ((elements + n - 1) / n), n};
        default: return {n * elements};
    }
}

struct Pair {
    std::unique_ptr<comm::Groups> shared = groups_by(TransportChoice::shared);
    std::unique_ptr<comm::Groups> messages = groups_by(TransportChoice::mpi);

    /// The same call on both; both results and what was counted must be equal.
    template <typename Call>
    void compare(const Tensor& out, Call call) const {
        Tensor by_memory = out;
        Tensor by_messages = out;
        std::vector<std::byte> staging(1 << 22);
        call(*shared, by_memory.view(), std::span(staging));
        call(*messages, by_messages.view(), std::span(staging));
        CHECK(by_memory == by_messages);
        CHECK(shared->traffic() == messages->traffic());
    }
};

}  // namespace

TEST_CASE("reductions through shared memory have the bits of those by messages") {
    const Pair pair;
    const std::int64_t n = test::mpi_world().size();
    Random random(51);
    for (int round = 0; round < 12; ++round) {
        for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
            const Shape shape = random_shape(random, n, dtype);
            CAPTURE(tensor::to_string(shape));
            Tensor in = contribution(dtype, shape, static_cast<std::uint64_t>(round));
            pair.compare(in, [&](comm::Groups& groups, const tensor::View& data, std::span<std::byte> staging) {
                groups.all_reduce(axes, data, staging);
            });
            pair.compare(in, [&](comm::Groups& groups, const tensor::View& data, std::span<std::byte> staging) {
                groups.all_reduce_max(axes, data, staging);
            });
            for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
                Shape part = shape;
                if (part[static_cast<std::size_t>(dim)] % n != 0) {
                    continue;
                }
                part[static_cast<std::size_t>(dim)] /= n;
                pair.compare(Tensor(dtype, part),
                             [&](comm::Groups& groups, const tensor::View& out, std::span<std::byte> staging) {
                                 groups.reduce_scatter(axes, dim, in.view(), out, staging);
                             });
            }
        }
    }
}

TEST_CASE("what is only moved arrives through shared memory as by messages") {
    const Pair pair;
    const std::int64_t n = test::mpi_world().size();
    const std::int64_t me = test::mpi_world().rank();
    Random random(52);
    for (int round = 0; round < 12; ++round) {
        const DType dtype = random.below(2) == 0 ? DType::u8 : DType::i64;
        const Shape shape = random_shape(random, n, dtype);
        CAPTURE(tensor::to_string(shape));
        Tensor in = contribution(dtype, shape, static_cast<std::uint64_t>(round));
        const auto dims = static_cast<std::int64_t>(shape.size());
        const int dim = static_cast<int>(random.below(dims));
        pair.compare(Tensor(dtype, test::grown(shape, dim, n)),
                     [&](comm::Groups& groups, const tensor::View& out, std::span<std::byte> staging) {
                         groups.all_gather(axes, dim, in.view(), out, staging);
                     });
        const int split = static_cast<int>(dims) - 1;
        Shape turned = test::grown(shape, dim, n);
        turned[static_cast<std::size_t>(split)] /= n;
        pair.compare(Tensor(dtype, turned),
                     [&](comm::Groups& groups, const tensor::View& out, std::span<std::byte> staging) {
                         groups.all_to_all(axes, split, dim, in.view(), out, staging);
                     });
        const std::int64_t shift = random.below(n);
        const std::int64_t next = (me + shift) % n;
        pair.compare(Tensor(dtype, shape), [&](comm::Groups& groups, const tensor::View& out, std::span<std::byte>) {
            groups.permute(axes, (me + n - shift) % n, {&next, 1}, in.view(), out);
        });
    }
}

TEST_CASE("without room in shared memory the ranks send messages, or say so when they must not") {
    comm::World& world = test::mpi_world();
    const Mesh mesh({{"a", world.size()}});
    const std::int64_t needed = comm::Window::segment_bytes(half) * world.size();
    Tensor data = contribution(DType::f32, {1000}, 1);
    std::vector<std::byte> staging(1 << 16);
    Tensor expected = data;
    groups_by(TransportChoice::mpi)->all_reduce(axes, expected.view(), staging);

    const auto groups = world.groups(mesh, {.window_half_bytes = half, .shared_memory_limit = needed - 1});
    groups->all_reduce(axes, data.view(), staging);
    CHECK(data == expected);
    REQUIRE(groups->windows().size() == 1);
    CHECK(groups->windows()[0].bytes == 0);
    const std::string reason = fmt::format("no room for {} bytes of shared memory in /dev/shm", needed);
    CHECK(groups->windows()[0].refused == reason);

    const auto strict = world.groups(
        mesh, {.transport = TransportChoice::shared, .window_half_bytes = half, .shared_memory_limit = needed - 1});
    CHECK_THROWS_WITH(strict->all_reduce(axes, data.view(), staging),
                      ("all-reduce: no shared memory between the ranks of a group: " + reason).c_str());

    const auto enough = world.groups(mesh, {.window_half_bytes = half, .shared_memory_limit = needed});
    enough->all_reduce(axes, data.view(), staging);
    REQUIRE(enough->windows().size() == 1);
    CHECK(enough->windows()[0].bytes == comm::Window::segment_bytes(half));
    CHECK(enough->windows()[0].members == world.size());
    CHECK(enough->windows()[0].refused.empty());
}

TEST_CASE("a window for each group that is used, freed in whatever order they were made") {
    comm::World& world = test::mpi_world();
    if (world.size() % 2 != 0 || world.size() < 4) {
        return;
    }
    const mesh::AxisId a{0};
    const mesh::AxisId b{1};
    std::vector<std::byte> staging(1 << 16);
    for (int round = 0; round < 3; ++round) {
        const auto groups = world.groups(Mesh({{"a", 2}, {"b", world.size() / 2}}));
        const auto others = world.groups(Mesh({{"a", world.size() / 2}, {"b", 2}}));
        CHECK(groups->windows().empty());
        // Ranks of the first half use one group earlier than the others do.
        std::vector<mesh::AxisList> order = {{a, b}, {b}, {b, a}, {a}};
        if (world.rank() * 2 < world.size()) {
            std::swap(order[0], order[1]);
        }
        for (const mesh::AxisList& list : order) {
            for (comm::Groups* some : {groups.get(), others.get()}) {
                Tensor ones =
                    test::generate(DType::f32, {5000}, [](const Shape&) { return std::bit_cast<std::uint32_t>(1.0F); });
                some->all_reduce(list, ones.view(), staging);
                const float members = static_cast<float>(some->mesh().size(list));
                CHECK(ones == test::generate(DType::f32, {5000},
                                             [&](const Shape&) { return std::bit_cast<std::uint32_t>(members); }));
            }
        }
        CHECK(groups->windows().size() == 4);
    }
}
