// Random situations for collectives: a mesh, a group, a shape, contents that are functions of the index in the global
// tensor of the group. The same on all ranks but for the position.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/mpi_world.h"
#include "tensors.h"

namespace shardplan::test {

using mesh::AxisId;
using mesh::AxisList;
using mesh::CollectiveKind;
using mesh::Mesh;
using tensor::DType;
using tensor::Shape;

inline Mesh random_mesh(Random& random, std::int64_t devices) {
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

inline AxisList random_axes(Random& random, const Mesh& mesh) {
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
        // So do small windows.
        groups = world.groups(
            mesh, {.check_calls = random.below(2) == 0,
                   .max_call_bytes = random.below(2) == 0 ? 24 : std::int64_t{1} << 30,
                   .transport = random.below(3) == 0 ? comm::TransportChoice::mpi : comm::TransportChoice::shared,
                   .window_half_bytes = random.below(2) == 0 ? 64 : std::int64_t{1} << 16});
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
inline void check_traffic(const Scene& scene, CollectiveKind kind, std::int64_t payload, std::int64_t movers = 0) {
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
inline Bits ordered_sum(const Scene& scene, DType dtype, const Shape& index) {
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

}  // namespace shardplan::test
