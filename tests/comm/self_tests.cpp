#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>

#include "comm/communicator.h"
#include "tensors.h"

using namespace shardplan;
using mesh::AxisId;
using mesh::AxisList;
using mesh::CollectiveKind;
using tensor::DType;
using tensor::Shape;
using test::Tensor;

TEST_CASE("a world of one rank") {
    const auto world = comm::make_self_world();
    CHECK(world->rank() == 0);
    CHECK(world->size() == 1);
    CHECK(world->local_rank() == 0);
    CHECK(world->local_size() == 1);
    world->barrier();
    std::string text = "as it was";
    world->broadcast(text);
    CHECK(text == "as it was");
    CHECK(world->gather("x") == std::vector<std::string>{"x"});
    std::vector<std::int64_t> values = {3, -4};
    world->all_reduce(std::span(values), comm::WorldOp::sum);
    CHECK(values == std::vector<std::int64_t>{3, -4});
    CHECK(world->agree(true));
    CHECK_FALSE(world->agree(false));
    CHECK(world->same_everywhere(7));
}

TEST_CASE("collectives of groups of one rank are copies and cause no traffic") {
    const auto world = comm::make_self_world();
    const auto groups = world->groups(mesh::Mesh({{"a", 1}, {"b", 1}}));
    const AxisList axes{AxisId{1}, AxisId{0}};
    Tensor in = test::generate(DType::i64, {2, 3}, [](const Shape& index) { return test::hash_of(5, index); });
    Tensor out(DType::i64, in.shape);

    groups->all_gather(axes, 1, in.view(), out.view(), {});
    CHECK(out == in);
    out = Tensor(DType::i64, in.shape);
    groups->all_to_all(axes, 0, 1, in.view(), out.view(), {});
    CHECK(out == in);
    out = Tensor(DType::i64, in.shape);
    const std::vector<std::int64_t> self = {0};
    groups->permute(axes, 0, self, in.view(), out.view());
    CHECK(out == in);
    out = Tensor(DType::i64, in.shape);
    groups->slice(axes, 0, in.view(), out.view());
    CHECK(out == in);
    groups->all_reduce_max(axes, out.view(), {});
    CHECK(out == in);

    Tensor partial = test::generate(
        DType::f32, {2, 3}, [](const Shape& index) { return test::bits_of(DType::f32, test::hash_of(5, index)); });
    Tensor sum(DType::f32, partial.shape);
    groups->reduce_scatter(axes, 1, partial.view(), sum.view(), {});
    CHECK(sum == partial);
    groups->all_reduce(AxisList{}, sum.view(), {});
    CHECK(sum == partial);
    CHECK(groups->traffic() == comm::TrafficTable{});
}

TEST_CASE("broken preconditions name the collective and the values") {
    const auto world = comm::make_self_world();
    CHECK_THROWS_WITH_AS(world->groups(mesh::Mesh({{"a", 2}})), "the mesh has 2 devices, but there are 1 ranks",
                         std::runtime_error);
    const auto groups = world->groups(mesh::Mesh({{"a", 1}}));
    const AxisList axes{AxisId{0}};
    Tensor in(DType::f32, {2, 3});
    Tensor other(DType::f32, {3, 2});
    Tensor wide(DType::f64, {2, 3});
    Tensor integers(DType::i64, {2});
    const std::vector<std::int64_t> none;
    CHECK_THROWS_WITH(groups->all_gather(axes, 2, in.view(), in.view(), {}),
                      "all-gather: dimension 2 of a tensor of shape [2, 3]");
    CHECK_THROWS_WITH(groups->slice(axes, 0, in.view(), other.view()),
                      "slice: the output for an input of shape [2, 3] has shape [3, 2], not [2, 3]");
    CHECK_THROWS_WITH(groups->all_to_all(axes, 0, 1, in.view(), wide.view(), {}),
                      "all-to-all: input of f32, output of f64");
    CHECK_THROWS_WITH(groups->all_reduce(axes, integers.view(), {}), "all-reduce: not possible for i64");
    CHECK_THROWS_WITH(groups->permute(axes, 1, none, in.view(), other.view()),
                      "permute: the output for an input of shape [2, 3] has shape [3, 2], not [2, 3]");
    CHECK_THROWS_WITH(groups->permute(axes, 1, none, in.view(), in.view()), "permute: source 1 in a group of 1");
    CHECK_THROWS_WITH(groups->permute(axes, 0, none, in.view(), in.view()),
                      "permute: position 0 takes the block of 0, but its destinations say otherwise");
}

TEST_CASE("the environment switches the comparison of calls on") {
    ::setenv("SHARDPLAN_CHECK_COLLECTIVES", "1", 1);
    CHECK(comm::GroupOptions::from_environment().check_calls);
    ::setenv("SHARDPLAN_CHECK_COLLECTIVES", "0", 1);
    CHECK_FALSE(comm::GroupOptions::from_environment().check_calls);
    ::unsetenv("SHARDPLAN_CHECK_COLLECTIVES");
    CHECK_FALSE(comm::GroupOptions::from_environment().check_calls);
}

TEST_CASE("the environment chooses how the bytes travel") {
    using comm::TransportChoice;
    ::unsetenv("SHARDPLAN_TRANSPORT");
    CHECK(comm::GroupOptions::from_environment().transport == TransportChoice::automatic);
    const std::vector<std::pair<const char*, TransportChoice>> choices = {
        {"auto", TransportChoice::automatic}, {"mpi", TransportChoice::mpi}, {"shared", TransportChoice::shared}};
    for (const auto& [text, choice] : choices) {
        ::setenv("SHARDPLAN_TRANSPORT", text, 1);
        CHECK(comm::GroupOptions::from_environment().transport == choice);
    }
    ::setenv("SHARDPLAN_TRANSPORT", "shm", 1);
    CHECK_THROWS_WITH_AS(comm::GroupOptions::from_environment(),
                         "SHARDPLAN_TRANSPORT is 'shm', must be auto, mpi or shared", std::runtime_error);
    ::unsetenv("SHARDPLAN_TRANSPORT");
    CHECK_THROWS_WITH(comm::make_self_world()->groups(mesh::Mesh({{"a", 1}}), {.window_half_bytes = 100}),
                      "window_half_bytes is 100, must be a positive multiple of 64");
}

TEST_CASE("what is known of MPI before it starts") {
    CHECK(comm::mpi_version().find("MPI") != std::string::npos);
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    ::unsetenv("PMIX_RANK");
    ::unsetenv("PMI_RANK");
    ::unsetenv("SLURM_STEP_NUM_TASKS");
    ::setenv("SLURM_PROCID", "0", 1);  // a batch script, not a step
    CHECK_FALSE(comm::launched_by_mpirun());
    ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    CHECK(comm::launched_by_mpirun());
    ::unsetenv("SLURM_STEP_NUM_TASKS");
    ::setenv("PMIX_RANK", "1", 1);
    CHECK(comm::launched_by_mpirun());
    ::unsetenv("PMIX_RANK");
    ::unsetenv("SLURM_PROCID");
}
