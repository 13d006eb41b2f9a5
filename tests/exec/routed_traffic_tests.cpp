// The bytes that a routing asks for, counted by hand.
#include "exec/routed_traffic.h"

#include <doctest/doctest.h>

#include "exec/models.h"

using namespace shardplan;

namespace {

/// Sequence i on rank i of two, four experts each.
plan::Plan plan_on_two_ranks(model::Mode mode, std::int64_t tokens) {
    model::Workload workload;
    workload.mode = mode;
    workload.batch_size = 2;
    workload.sequence_length = tokens;
    workload.dtype = tensor::DType::f32;
    plan::Job job = test::job_of(test::tiny_mixtral(), workload, "ep=2");
    job.partition_axis.set("batch_axis", {"ep"}, "/partition_axis/batch_axis");
    job.dispatcher = plan::TokenDispatcher::all_to_all;
    return test::plan_of(job);
}

/// The experts of each token of [2, tokens], as a routing of eight.
exec::RoutingLog log_of(std::int64_t tokens, const std::vector<std::vector<std::size_t>>& experts) {
    std::vector<float> weights(experts.size() * 8, 0.0F);
    for (std::size_t token = 0; token < experts.size(); ++token) {
        for (const std::size_t expert : experts[token]) {
            weights[token * 8 + expert] = 0.5F;
        }
    }
    exec::RoutingLog log;
    for (const int layer : {0, 1}) {
        log.add(layer, {reinterpret_cast<const std::byte*>(weights.data()), tensor::DType::f32, {2, tokens, 8}});
    }
    return log;
}

/// Out and back 32 values each, and the routing to four experts.
constexpr std::int64_t row_bytes = 32 * 4 + 4 * 4 + 32 * 4;
constexpr std::int64_t layers = 2;

std::vector<std::int64_t> positions(std::initializer_list<std::int64_t> first) {
    return first;
}

}  // namespace

TEST_CASE("only tokens with an expert on the other rank travel, once") {
    const plan::Plan plan = plan_on_two_ranks(model::Mode::prefill, 2);
    // Of sequence 0 (rank 0) the second token leaves, of sequence 1 both do.
    const exec::RoutingLog log = log_of(2, {{0, 3}, {4, 7}, {3, 4}, {0, 1}});
    CHECK(exec::routed_bytes(plan, log, positions({0})) == layers * 3 * row_bytes);
    CHECK(exec::routed_bytes(plan, log, positions({0, 0, 0, 0, 0})) == layers * 3 * row_bytes * 5);
    CHECK(exec::routed_bytes(plan, log_of(2, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}), positions({0})) == 0);
}

TEST_CASE("a step of one token has those of its position") {
    const plan::Plan plan = plan_on_two_ranks(model::Mode::decode, 2);
    const exec::RoutingLog log = log_of(3, {{4, 5}, {0, 1}, {0, 4}, {4, 5}, {4, 5}, {4, 6}});
    CHECK(exec::routed_bytes(plan, log, positions({0})) == layers * 1 * row_bytes);
    CHECK(exec::routed_bytes(plan, log, positions({0, 1})) == layers * 1 * row_bytes);
    CHECK(exec::routed_bytes(plan, log, positions({0, 1, 2})) == layers * 2 * row_bytes);
}

TEST_CASE("a layer whose routing is not known is an error") {
    const plan::Plan plan = plan_on_two_ranks(model::Mode::prefill, 2);
    CHECK(exec::RoutingLog().empty());
    CHECK_THROWS_AS(exec::routed_bytes(plan, exec::RoutingLog(), positions({0})), std::logic_error);
}
