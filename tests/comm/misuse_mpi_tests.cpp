// What happens when the members of a group do not call the same, and which of them have to call at all.
#include <doctest/doctest.h>

#include <stdexcept>

#include "support/mpi_world.h"
#include "tensors.h"

using namespace shardplan;
using mesh::AxisId;
using mesh::AxisList;
using mesh::Mesh;
using tensor::DType;
using tensor::Shape;
using test::Tensor;

namespace {

const AxisList axes{AxisId{0}};

/// The message of what `call` throws, "" if it does not.
template <typename Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("different calls in one group throw on all members, with both calls in the text") {
    comm::World& world = test::mpi_world();
    const auto groups = world.groups(Mesh({{"a", world.size()}}), {.check_calls = true});
    const bool odd_one = world.rank() == world.size() - 1;
    const std::string last = "; position " + std::to_string(world.size() - 1) + " ";
    std::vector<std::byte> staging(4096);

    Tensor few(DType::f32, {2});
    Tensor many(DType::f32, {3});
    const std::string counts =
        message_of([&] { groups->all_reduce(axes, odd_one ? many.view() : few.view(), staging); });
    CHECK(counts ==
          "members of a group call different collectives: position 0 all-reduce of 2 f32 (dimensions -1, -1)" + last +
              "all-reduce of 3 f32 (dimensions -1, -1)");

    const std::string kinds = message_of([&] {
        odd_one ? groups->all_reduce_max(axes, few.view(), staging) : groups->all_reduce(axes, few.view(), staging);
    });
    CHECK(kinds == "members of a group call different collectives: position 0 all-reduce of 2 f32 (dimensions -1, -1)" +
                       last + "all-reduce-max of 2 f32 (dimensions -1, -1)");

    Tensor in(DType::f32, {1, 1});
    Tensor out(DType::f32, odd_one ? Shape{1, world.size()} : Shape{world.size(), 1});
    const std::string dims =
        message_of([&] { groups->all_gather(axes, odd_one ? 1 : 0, in.view(), out.view(), staging); });
    CHECK(dims == "members of a group call different collectives: position 0 all-gather of 1 f32 (dimensions 0, -1)" +
                      last + "all-gather of 1 f32 (dimensions 1, -1)");

    // Nothing was exchanged or counted, and the group still works.
    CHECK(groups->traffic() == comm::TrafficTable{});
    CHECK(message_of([&] { groups->all_reduce(axes, few.view(), staging); }).empty());
}

TEST_CASE("only the members of a group need to call") {
    comm::World& world = test::mpi_world();
    if (world.size() % 2 != 0) {
        return;
    }
    const std::int64_t half = world.size() / 2;
    const auto groups = world.groups(Mesh({{"stage", 2}, {"tensor", half}}));
    const AxisList tensor_axis{AxisId{1}};
    if (world.rank() < half) {
        Tensor in =
            test::generate(DType::i64, {1}, [&](const Shape&) { return static_cast<test::Bits>(world.rank()); });
        Tensor out(DType::i64, {half});
        std::vector<std::byte> staging(out.bytes.size());
        groups->all_gather(tensor_axis, 0, in.view(), out.view(), staging);
        CHECK(out ==
              test::generate(DType::i64, {half}, [](const Shape& index) { return static_cast<test::Bits>(index[0]); }));
    }
    world.barrier();
}

TEST_CASE("broken preconditions throw before anything is sent") {
    comm::World& world = test::mpi_world();
    const std::int64_t n = world.size();
    const auto groups = world.groups(Mesh({{"a", n}}));
    Tensor in(DType::f32, {2, n});
    Tensor uneven(DType::f32, {2, n + 1});
    Tensor half(DType::f32, {2, 1});
    Tensor integers(DType::i32, {n});
    std::vector<std::byte> staging(static_cast<std::size_t>(2 * 2 * n * 4 - 1));
    const std::vector<std::int64_t> outside = {n};

    CHECK(message_of([&] { groups->reduce_scatter(axes, 1, in.view(), half.view(), staging); }) ==
          "reduce-scatter: " + std::to_string(staging.size()) + " bytes of staging, " +
              std::to_string(staging.size() + 1) + " are needed");
    CHECK(message_of([&] { groups->slice(axes, 1, uneven.view(), half.view()); }) ==
          "slice: dimension 1 of shape " + tensor::to_string(uneven.shape) + " cannot be cut into " +
              std::to_string(n) + " equal blocks");
    CHECK(message_of([&] { groups->all_reduce(axes, integers.view(), staging); }) ==
          "all-reduce: not possible for i32");
    CHECK(message_of([&] { groups->permute(axes, 0, outside, in.view(), uneven.view()); }) != "");
    Tensor same(DType::f32, in.shape);
    CHECK(message_of([&] { groups->permute(axes, 0, outside, in.view(), same.view()); }) ==
          "permute: destination " + std::to_string(n) + " in a group of " + std::to_string(n));
    CHECK(message_of([&] {
              world.groups(Mesh({{"a", n}, {"b", 2}}));
          }) == "the mesh has " + std::to_string(2 * n) + " devices, but there are " + std::to_string(n) + " ranks");
    for (const comm::Traffic& traffic : groups->traffic()) {
        CHECK(traffic.wire_bytes == 0);
    }
}
