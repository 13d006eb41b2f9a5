// Random meshes, groups, shapes and dtypes; every result is compared bit by bit with the one computed locally from the
// definition, whose elements are functions of the index in the global tensor of the group.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/mpi_world.h"
#include "tensors.h"

using namespace shardplan;
using mesh::AxisId;
using mesh::AxisList;
using mesh::CollectiveKind;
using mesh::Mesh;
using tensor::DType;
using tensor::Shape;
using test::Bits;
using test::Random;
using test::Tensor;

namespace {

constexpr int rounds = 30;

Mesh random_mesh(Random& random, std::int64_t devices) {
    std::vector<mesh::Axis> axes;
    const std::int64_t count = 1 + random.below(4);
    for (std::int64_t i = 0; i < count; ++i) {
        axes.push_back({std::string(1, static_cast<char>('a' + i)), 1});
    }
    for (std::int64_t factor = 2; devices > 1; ++factor) {
        while (devices % factor == 0) {
            axes[static_cast<std::size_t>(random.below(count))].size *= factor;
            devices /= factor;
        }
    }
    return Mesh(axes);
}

AxisList random_axes(Random& random, const Mesh& mesh) {
    std::vector<int> ids;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        ids.insert(ids.begin() + random.below(i + 1), i);
    }
    AxisList axes;
    const std::int64_t count = 1 + random.below(mesh.axis_count());
    for (std::int64_t i = 0; i < count; ++i) {
        axes.push_back(AxisId{static_cast<std::uint8_t>(ids[static_cast<std::size_t>(i)])});
    }
    return axes;
}

/// One random situation, the same on all ranks but for `position` and `salt`.
struct Scene {
    Mesh mesh;
    AxisList axes;
    std::unique_ptr<comm::Groups> groups;
    std::int64_t n = 1;
    std::int64_t position = 0;
    std::uint64_t salt = 0;  ///< differs between groups and rounds
    Shape shape;
    int dim = 0;
    int other_dim = 0;
    std::string text;

    Scene(Random& random, comm::World& world)
        : mesh(random_mesh(random, world.size())), axes(random_axes(random, mesh)) {
        // Short messages exercise the splitting of long ones.
        groups = world.groups(mesh, {random.below(2) == 0, random.below(2) == 0 ? 24 : std::int64_t{1} << 30});
        n = mesh.size(axes);
        position = mesh.position(world.rank(), axes);
        salt = static_cast<std::uint64_t>(random.below(1 << 20) * 64 + mesh.group(world.rank(), axes).front());
        const std::int64_t dims = 1 + random.below(4);
        for (std::int64_t d = 0; d < dims; ++d) {
            shape.push_back(random.below(12) == 0 ? 0 : 1 + random.below(4));
        }
        dim = static_cast<int>(random.below(dims));
        other_dim = static_cast<int>(random.below(dims));
        text =
            fmt::format("n {} position {} shape {} dims {} {}", n, position, tensor::to_string(shape), dim, other_dim);
        for (int i = 0; i < axes.size(); ++i) {
            text += fmt::format(" {}={}", mesh.name(axes[i]), mesh.size(axes[i]));
        }
    }

    std::int64_t size(int d) const { return shape[static_cast<std::size_t>(d)]; }

    /// The bits of the global tensor of this group (or of the contribution of position `part` to a sum).
    Bits at(DType dtype, const Shape& index, std::int64_t part = 0) const {
        return test::bits_of(dtype, test::hash_of(salt + static_cast<std::uint64_t>(part << 32), index));
    }
    /// A part of that tensor that begins at `offset` of dimension `d`.
    Tensor block(DType dtype, const Shape& sizes, int d, std::int64_t offset, std::int64_t part = 0) const {
        return test::generate(dtype, sizes,
                              [&](const Shape& index) { return at(dtype, test::shifted(index, d, offset), part); });
    }
};

/// Staging of exactly the planned size, followed by bytes that must stay as they are.
class Staging {
public:
    Staging(CollectiveKind kind, std::int64_t n, const Tensor& in, const Tensor& out)
        : size_(n == 1 ? 0
                       : static_cast<std::size_t>(mesh::staging_bytes(
                             kind, n, std::ssize(in.bytes), std::ssize(out.bytes), tensor::size_of(in.dtype)))),
          bytes_(size_ + 64, std::byte{0x5a}) {}
    std::span<std::byte> span() { return std::span(bytes_).first(size_); }
    bool intact() const {
        return std::all_of(bytes_.end() - 64, bytes_.end(), [](std::byte b) { return b == std::byte{0x5a}; });
    }

private:
    std::size_t size_;
    std::vector<std::byte> bytes_;
};

/// The bytes that all ranks sent are those of the plan's formula for all groups together.
void check_traffic(const Scene& scene, CollectiveKind kind, std::int64_t payload, std::int64_t movers = 0) {
    comm::World& world = test::mpi_world();
    std::int64_t sent = scene.groups->traffic(kind).wire_bytes;
    world.all_reduce(std::span(&sent, 1), comm::WorldOp::sum);
    const std::int64_t group_count = world.size() / scene.n;
    CHECK(sent == group_count * mesh::group_wire_bytes(kind, scene.n, payload, movers));
    CHECK(scene.groups->traffic(kind).calls == (scene.n > 1 ? 1 : 0));
    CHECK(scene.groups->traffic(kind).payload_bytes == (scene.n > 1 ? payload : 0));
    scene.groups->reset_traffic();
    CHECK(scene.groups->traffic() == comm::TrafficTable{});
}

/// The sum of the contributions of all positions as the definition says: in order, bf16 in f32, rounded once.
Bits ordered_sum(const Scene& scene, DType dtype, const Shape& index) {
    const auto first = scene.at(dtype, index, 0);
    if (dtype == DType::f64) {
        double sum = std::bit_cast<double>(first);
        for (std::int64_t p = 1; p < scene.n; ++p) {
            sum += std::bit_cast<double>(scene.at(dtype, index, p));
        }
        return std::bit_cast<Bits>(sum);
    }
    const auto widen = [&](Bits bits) {
        return dtype == DType::bf16 ? tensor::float_from_bf16(static_cast<std::uint16_t>(bits))
                                    : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    };
    float sum = widen(first);
    for (std::int64_t p = 1; p < scene.n; ++p) {
        sum += widen(scene.at(dtype, index, p));
    }
    return dtype == DType::bf16 ? tensor::bf16_from_float(sum) : std::bit_cast<std::uint32_t>(sum);
}

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
