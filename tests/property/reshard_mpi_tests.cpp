// Random reshards on real ranks: every element ends where the target layout says, partial sums complete.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "comm/tensors.h"
#include "exec/collective_call.h"
#include "partition/reshard.h"
#include "partition/reshard_cases.h"
#include "property/seed.h"
#include "support/mpi_world.h"

using namespace shardplan;
using partition::Layout;

namespace {

/// Contributions are small integers: their sums are exact in f32 in any order.
class Values {
public:
    Values(const test::ReshardCase& c, std::uint64_t salt) : case_(c), salt_(salt) {}

    /// What a rank of the start layout adds to the element.
    std::int64_t contribution(const tensor::Shape& global, std::int64_t rank) const {
        std::uint64_t hash = test::hash_of(salt_, global);
        for (int i = 0; i < case_.mesh.axis_count(); ++i) {
            const mesh::AxisId axis{static_cast<std::uint8_t>(i)};
            if (case_.from.pending.contains(axis)) {
                hash = base::splitmix64(hash + static_cast<std::uint64_t>(case_.mesh.coordinate(rank, axis)));
            }
        }
        return static_cast<std::int64_t>(hash % 1000);
    }

    /// The element on `rank` in a layout on the way: summed over what is pending no more.
    std::int64_t value(const tensor::Shape& global, std::int64_t rank, const Layout& layout) const {
        mesh::AxisList finished;
        for (int i = 0; i < case_.mesh.axis_count(); ++i) {
            const mesh::AxisId axis{static_cast<std::uint8_t>(i)};
            if ((case_.from.pending - layout.pending).contains(axis)) {
                finished.push_back(axis);
            }
        }
        std::int64_t sum = 0;
        for (const std::int64_t other : case_.mesh.group(rank, finished)) {
            sum += contribution(global, other);
        }
        return sum;
    }

    test::Tensor block(const Layout& layout, std::int64_t rank, tensor::DType dtype) const {
        const auto ranges = local_ranges(layout, case_.shape, case_.mesh, rank);
        return test::generate(dtype, local_shape(layout, case_.shape, case_.mesh), [&](tensor::Shape index) {
            for (std::size_t d = 0; d < index.size(); ++d) {
                index[d] += ranges[d].begin;
            }
            const std::int64_t v = value(index, rank, layout);
            return dtype == tensor::DType::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(v))
                                               : std::bit_cast<std::uint64_t>(static_cast<double>(v));
        });
    }

private:
    const test::ReshardCase& case_;
    std::uint64_t salt_;
};

/// One step through the executor's own call.
test::Tensor run_step(comm::Groups& groups, const partition::ReshardStep& step, const Layout& before,
                      const test::Tensor& in, const tensor::Shape& out_shape) {
    plan::BlockPlan block;
    block.values.resize(2);
    block.values[0].layout = before;
    block.values[1].layout = step.after;
    plan::CollectiveStep call;
    call.kind = step.kind;
    call.axes = step.axes;
    call.dim = step.dim;
    call.concat_dim = step.concat_dim;
    call.input = 0;
    call.output = 1;
    test::Tensor input = in;
    test::Tensor out(in.dtype, out_shape);
    const std::int64_t staging = mesh::staging_bytes(step.kind, groups.mesh().size(step.axes), std::ssize(input.bytes),
                                                     std::ssize(out.bytes), tensor::size_of(in.dtype));
    std::vector<std::byte> scratch(static_cast<std::size_t>(staging));
    const std::vector<tensor::View> views = {input.view(), out.view()};
    exec::run_collective(groups, block, call, views, scratch);
    return out;
}

void run_case(const test::ReshardCase& c, comm::World& world, comm::Groups& groups, std::uint64_t salt) {
    const Values values(c, salt);
    const auto dtype = salt % 2 == 0 ? tensor::DType::f32 : tensor::DType::f64;
    partition::Resharder resharder(c.mesh);
    std::vector<partition::ReshardStep> steps = resharder.path(c.from, c.to)->steps;
    if (c.from.pending.empty()) {  // and back again
        const auto& back = resharder.path(c.to, c.from)->steps;
        steps.insert(steps.end(), back.begin(), back.end());
    }
    Layout layout = c.from;
    test::Tensor held = values.block(layout, world.rank(), dtype);
    for (const partition::ReshardStep& step : steps) {
        held = run_step(groups, step, layout, held, local_shape(step.after, c.shape, c.mesh));
        layout = step.after;
        CHECK_MESSAGE(held == values.block(layout, world.rank(), dtype), c.text() << ", " << to_string(step.kind));
    }
}

/// A mesh of all ranks with up to four axes, some of size 1.
mesh::Mesh mesh_of_world(test::Random& random, std::int64_t ranks) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(1 + random.below(4)), 1);
    std::int64_t rest = ranks;
    for (std::int64_t prime = 2; rest > 1; ++prime) {
        for (; rest % prime == 0; rest /= prime) {
            sizes[static_cast<std::size_t>(random.below(std::ssize(sizes)))] *= prime;
        }
    }
    std::vector<mesh::Axis> axes;
    for (const std::int64_t size : sizes) {
        axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size});
    }
    return mesh::Mesh(axes);
}

}  // namespace

TEST_CASE("random reshards move every element to its place") {
    comm::World& world = test::mpi_world();
    const std::uint64_t seed = test::run_seed();
    test::Random random(seed * 31 + 5);
    INFO("seed " << seed);
    for (int m = 0; m < 30; ++m) {
        const mesh::Mesh mesh = mesh_of_world(random, world.size());
        const auto groups = world.groups(mesh, {.check_calls = true});
        for (int i = 0; i < 20; ++i) {
            test::ReshardCase c = test::random_reshard(random, mesh);
            for (std::int64_t& size : c.shape) {
                size *= 1 + random.below(3);
            }
            run_case(c, world, *groups, seed + static_cast<std::uint64_t>(20 * m + i));
        }
    }
}
