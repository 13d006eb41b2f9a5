// Random meshes, groups, shapes and dtypes; every result is compared bit by bit with the one computed locally from the
// definition, whose elements are functions of the index in the global tensor of the group.
#include <doctest/doctest.h>

#include <numeric>

#include "scenes.h"

using namespace shardplan;
using mesh::AxisId;
using mesh::AxisList;
using mesh::CollectiveKind;
using mesh::Mesh;
using tensor::DType;
using tensor::Shape;
using test::Bits;
using test::check_traffic;
using test::ordered_sum;
using test::Random;
using test::Scene;
using test::Staging;
using test::Tensor;

namespace {

constexpr int rounds = 30;

}  // namespace

TEST_CASE("all_gather puts the global tensor together, slice takes it apart") {
    Random random(11);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8}) {
            Tensor in = scene.block(dtype, scene.shape, scene.dim, scene.position * scene.size(scene.dim));
            Tensor whole(dtype, test::grown(scene.shape, scene.dim, scene.n));
            Staging staging(CollectiveKind::all_gather, scene.n, in, whole);
            scene.groups->all_gather(scene.axes, scene.dim, in.view(), whole.view(), staging.span());
            CHECK(whole == scene.block(dtype, whole.shape, scene.dim, 0));
            CHECK(staging.intact());
            check_traffic(scene, CollectiveKind::all_gather, std::ssize(in.bytes));

            Tensor own(dtype, scene.shape);
            scene.groups->slice(scene.axes, scene.dim, whole.view(), own.view());
            CHECK(own == in);
            check_traffic(scene, CollectiveKind::slice, std::ssize(whole.bytes));
        }
    }
}

TEST_CASE("reduce_scatter keeps the own block of the ordered sum") {
    Random random(12);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
            const Shape whole = test::grown(scene.shape, scene.dim, scene.n);
            Tensor in = scene.block(dtype, whole, scene.dim, 0, scene.position);
            Tensor out(dtype, scene.shape);
            Staging staging(CollectiveKind::reduce_scatter, scene.n, in, out);
            scene.groups->reduce_scatter(scene.axes, scene.dim, in.view(), out.view(), staging.span());
            CHECK(out == test::generate(dtype, out.shape, [&](const Shape& index) {
                      const Shape global = test::shifted(index, scene.dim, scene.position * scene.size(scene.dim));
                      return ordered_sum(scene, dtype, global);
                  }));
            CHECK(staging.intact());
            check_traffic(scene, CollectiveKind::reduce_scatter, std::ssize(in.bytes));
        }
    }
}

TEST_CASE("all_reduce gives the ordered sum to all members") {
    Random random(13);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
            Tensor data = scene.block(dtype, scene.shape, 0, 0, scene.position);
            Staging staging(CollectiveKind::all_reduce, scene.n, data, data);
            scene.groups->all_reduce(scene.axes, data.view(), staging.span());
            CHECK(data == test::generate(dtype, data.shape,
                                         [&](const Shape& index) { return ordered_sum(scene, dtype, index); }));
            CHECK(staging.intact());
            check_traffic(scene, CollectiveKind::all_reduce, std::ssize(data.bytes));
        }
    }
}

TEST_CASE("all_reduce_max gives the maximum to all members") {
    Random random(14);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        Tensor data = scene.block(DType::i64, scene.shape, 0, 0, scene.position);
        Staging staging(CollectiveKind::all_reduce_max, scene.n, data, data);
        scene.groups->all_reduce_max(scene.axes, data.view(), staging.span());
        CHECK(data == test::generate(DType::i64, data.shape, [&](const Shape& index) {
                  auto largest = static_cast<std::int64_t>(scene.at(DType::i64, index, 0));
                  for (std::int64_t p = 1; p < scene.n; ++p) {
                      largest = std::max(largest, static_cast<std::int64_t>(scene.at(DType::i64, index, p)));
                  }
                  return static_cast<Bits>(largest);
              }));
        CHECK(staging.intact());
        check_traffic(scene, CollectiveKind::all_reduce_max, std::ssize(data.bytes));
    }
}

TEST_CASE("all_to_all moves the sharding from one dimension to another") {
    Random random(15);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        const int split = scene.dim;
        const int concat = scene.other_dim;
        for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
            Tensor in(dtype, test::grown(scene.shape, split, scene.n));
            Tensor expected(dtype, test::grown(scene.shape, concat, scene.n));
            if (split != concat) {
                in = scene.block(dtype, in.shape, concat, scene.position * scene.size(concat));
                expected = scene.block(dtype, expected.shape, split, scene.position * scene.size(split));
            } else {  // block p of this position becomes block `position` of position p
                in = scene.block(dtype, in.shape, 0, 0, scene.position);
                expected = test::generate(dtype, expected.shape, [&](const Shape& index) {
                    const std::int64_t size = scene.size(split);
                    const std::int64_t from = index[static_cast<std::size_t>(split)] / size;
                    return scene.at(dtype, test::shifted(index, split, (scene.position - from) * size), from);
                });
            }
            Tensor out(dtype, expected.shape);
            Staging staging(CollectiveKind::all_to_all, scene.n, in, out);
            scene.groups->all_to_all(scene.axes, split, concat, in.view(), out.view(), staging.span());
            CHECK(out == expected);
            CHECK(staging.intact());
            check_traffic(scene, CollectiveKind::all_to_all, std::ssize(in.bytes));
        }
    }
}

TEST_CASE("all_to_all_v moves rows as the counts say") {
    Random random(17);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        const std::int64_t width = 1 + random.below(4);
        std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(scene.n));  // [from][to]
        std::int64_t leaving = 0;
        for (std::size_t from = 0; from < rows.size(); ++from) {
            for (std::size_t to = 0; to < rows.size(); ++to) {
                rows[from].push_back(random.below(3) == 0 ? 0 : random.below(5));
                leaving += from == to ? 0 : rows[from].back();
            }
        }
        const auto me = static_cast<std::size_t>(scene.position);
        std::vector<std::int64_t> received;
        std::vector<std::pair<std::int64_t, std::int64_t>> arriving;  // position and row there
        for (std::size_t from = 0; from < rows.size(); ++from) {
            received.push_back(rows[from][me]);
            const std::int64_t first =
                std::accumulate(rows[from].begin(), rows[from].begin() + scene.position, std::int64_t{0});
            for (std::int64_t r = 0; r < received.back(); ++r) {
                arriving.emplace_back(static_cast<std::int64_t>(from), first + r);
            }
        }
        const std::int64_t room = 5 * scene.n + 1;
        Tensor in = scene.block(DType::bf16, {room, width}, 0, 0, scene.position);
        Tensor out(DType::bf16, {room, width});
        scene.groups->all_to_all_v(scene.axes, rows[me], received, in.view(), out.view());
        CHECK(out == test::generate(DType::bf16, out.shape, [&](const Shape& index) {
                  if (index[0] >= std::ssize(arriving)) {
                      return Bits{0};
                  }
                  const auto& [from, row] = arriving[static_cast<std::size_t>(index[0])];
                  return scene.at(DType::bf16, {row, index[1]}, from);
              }));
        const std::int64_t of_group = mesh::group_wire_bytes(CollectiveKind::all_to_all_v, scene.n, 2 * width, leaving);
        std::int64_t sums[] = {scene.groups->traffic(CollectiveKind::all_to_all_v).wire_bytes,
                               scene.position == 0 ? of_group : 0};
        test::mpi_world().all_reduce(std::span(sums), comm::WorldOp::sum);
        CHECK(sums[0] == sums[1]);
        std::vector<std::int64_t> wrong = rows[me];
        for (const std::int64_t count : {rows[me][me] + 1, std::int64_t{-1}}) {
            wrong[me] = count;
            CHECK_THROWS(scene.groups->all_to_all_v(scene.axes, wrong, received, in.view(), out.view()));
        }
        CHECK_THROWS(scene.groups->all_to_all_v(scene.axes, {}, received, in.view(), out.view()));
    }
}

TEST_CASE("permute takes the block of any position, the same or another") {
    Random random(16);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        std::vector<std::int64_t> sources;
        std::vector<std::int64_t> destinations;
        std::int64_t movers = 0;
        for (std::int64_t p = 0; p < scene.n; ++p) {
            sources.push_back(random.below(scene.n));
            movers += sources.back() != p ? 1 : 0;
            if (sources.back() == scene.position) {
                destinations.push_back(p);
            }
        }
        const std::int64_t source = sources[static_cast<std::size_t>(scene.position)];
        Tensor in = scene.block(DType::bf16, scene.shape, 0, 0, scene.position);
        Tensor out(DType::bf16, scene.shape);
        scene.groups->permute(scene.axes, source, destinations, in.view(), out.view());
        CHECK(out == scene.block(DType::bf16, scene.shape, 0, 0, source));
        check_traffic(scene, CollectiveKind::permute, std::ssize(in.bytes), movers);
    }
}

TEST_CASE("n neighbour exchanges bring every block to every position, and the own one back") {
    Random random(17);
    for (int round = 0; round < rounds; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        Tensor held = scene.block(DType::bf16, scene.shape, 0, 0, scene.position);
        const std::int64_t before = (scene.position + scene.n - 1) % scene.n;
        const std::int64_t next = (scene.position + 1) % scene.n;
        for (std::int64_t pass = 1; pass <= scene.n; ++pass) {
            Tensor arriving(DType::bf16, scene.shape);
            scene.groups->permute(scene.axes, before, {&next, 1}, held.view(), arriving.view());
            held = arriving;
            const std::int64_t source = (scene.position + scene.n - pass % scene.n) % scene.n;
            CHECK(held == scene.block(DType::bf16, scene.shape, 0, 0, source));
        }
        const comm::Traffic& traffic = scene.groups->traffic(CollectiveKind::permute);
        CHECK(traffic.calls == (scene.n == 1 ? 0 : scene.n));
        CHECK(traffic.wire_bytes == (scene.n == 1 ? 0 : scene.n * std::ssize(held.bytes)));
    }
}

TEST_CASE("the same axes in another order are another group") {
    comm::World& world = test::mpi_world();
    const std::int64_t n = world.size();
    if (n < 4 || n % 2 != 0) {
        return;
    }
    const Mesh mesh({{"a", 2}, {"b", n / 2}});
    const auto groups = world.groups(mesh);
    Tensor in = test::generate(DType::i64, {1}, [&](const Shape&) { return static_cast<Bits>(world.rank()); });
    for (const AxisList& axes : {AxisList{AxisId{0}, AxisId{1}}, AxisList{AxisId{1}, AxisId{0}}}) {
        Tensor out(DType::i64, {n});
        Staging staging(CollectiveKind::all_gather, n, in, out);
        groups->all_gather(axes, 0, in.view(), out.view(), staging.span());
        const bool b_major = axes[0] == AxisId{1};  // then ranks 0, n / 2, 1, n / 2 + 1, ...
        CHECK(out == test::generate(DType::i64, {n}, [&](const Shape& index) {
                  const std::int64_t i = index[0];
                  return static_cast<Bits>(b_major ? i / 2 + i % 2 * (n / 2) : i);
              }));
    }
}

TEST_CASE("a large sum has the same bits on all ranks and in every run") {
    comm::World& world = test::mpi_world();
    const auto groups = world.groups(Mesh({{"a", world.size()}}));
    const AxisList axes{AxisId{0}};
    const auto contribution = [&](const Shape& index) {
        return test::bits_of(DType::f32, test::hash_of(static_cast<std::uint64_t>(world.rank()), index));
    };
    const Tensor start = test::generate(DType::f32, {1000, 301}, contribution);
    Tensor first = start;
    Tensor second = start;
    Staging staging(CollectiveKind::all_reduce, world.size(), start, start);
    groups->all_reduce(axes, first.view(), staging.span());
    groups->all_reduce(axes, second.view(), staging.span());
    CHECK(first == second);
    const std::string_view text(reinterpret_cast<const char*>(first.bytes.data()), first.bytes.size());
    CHECK(world.same_everywhere(base::fnv1a(text)));
    CHECK(groups->traffic(CollectiveKind::all_reduce).calls == 2);
}
