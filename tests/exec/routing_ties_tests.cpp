// Choices at near ties are taken over, others are not.
#include "exec/routing_ties.h"

#include <doctest/doctest.h>

#include "exec/models.h"
#include "exec/verify.h"
#include "kernels/kernels.h"

using namespace shardplan;

namespace {

struct Router {
    std::vector<float> logits;
    std::vector<float> weights = std::vector<float>(logits.size());
    tensor::Shape shape;
    kernels::RouteParams params = {};

    tensor::View view(std::vector<float>& values) const {
        return {reinterpret_cast<std::byte*>(values.data()), tensor::DType::f32, shape};
    }
    void route() {
        kernels::make_kernels(kernels::KernelSet::reference)->route(view(logits), {}, params, view(weights));
    }
};

/// The choices of one sequence: a weight of 1 for each chosen expert.
exec::ChosenExperts chosen(int layer, std::int64_t experts, const std::vector<std::vector<std::size_t>>& tokens) {
    std::vector<float> weights(tokens.size() * static_cast<std::size_t>(experts));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        for (const std::size_t x : tokens[t]) {
            weights[t * static_cast<std::size_t>(experts) + x] = 1.0F;
        }
    }
    exec::ChosenExperts result;
    const auto token = [](std::int64_t, std::int64_t t) { return t; };
    result.add(
        layer,
        {reinterpret_cast<const std::byte*>(weights.data()), tensor::DType::f32, {1, std::ssize(tokens), experts}},
        [](std::int64_t) { return 0; }, token);
    return result;
}

}  // namespace

TEST_CASE("a choice is taken over only where scores are as close as rounding") {
    Router router{{1.0F, 0.99F, 0.0F, 0.0F,    // a tie
                   1.0F, 0.80F, 0.0F, 0.0F,    // none
                   0.0F, 1.00F, 0.0F, 0.99F},  // chosen alike
                  std::vector<float>(12),
                  {1, 3, 4}};
    router.route();
    exec::RoutingTies ties(chosen(5, 4, {{1}, {1}, {1}}), 0.05);
    const std::vector<float> before = router.logits;
    ties.settle(5, router.view(router.logits), router.view(router.weights), [&] { router.route(); });
    CHECK(ties.count() == 1);
    CHECK(router.weights[0] == 0.0F);
    CHECK(router.weights[1] > 0.0F);
    CHECK(router.weights[4] > 0.0F);
    CHECK(router.weights[5] == 0.0F);
    CHECK(router.weights[9] > 0.0F);
    CHECK(router.weights[11] == 0.0F);
    CHECK(std::equal(before.begin() + 4, before.end(), router.logits.begin() + 4));
    ties.settle(6, router.view(router.logits), router.view(router.weights),
                [] { FAIL("nothing is known of layer 6"); });
}

TEST_CASE("of several experts only those that differ move; groups count") {
    Router router{{2.0F, 1.00F, 0.995F, 0.9F}, std::vector<float>(4), {1, 1, 4}};
    router.params.top_k = 2;
    router.route();
    exec::RoutingTies ties(chosen(0, 4, {{0, 2}}), 0.02);
    ties.settle(0, router.view(router.logits), router.view(router.weights), [&] { router.route(); });
    CHECK(ties.count() == 1);
    CHECK(router.weights[1] == 0.0F);
    CHECK(router.logits[0] == 2.0F);
    CHECK(router.logits[3] == 0.9F);

    Router groups{{1.0F, 0.5F, 0.995F, 0.4F}, std::vector<float>(4), {1, 1, 4}};
    groups.params.groups = 2;
    groups.route();
    exec::RoutingTies other(chosen(0, 4, {{2}}), 0.02);
    other.settle(0, groups.view(groups.logits), groups.view(groups.weights), [&] { groups.route(); });
    CHECK(other.count() == 1);
    CHECK(groups.weights[2] > 0.0F);
}

TEST_CASE("what ranks know is put together") {
    exec::ChosenExperts all;
    all.merge(chosen(1, 4, {{0}, {2, 3}}).message());
    all.merge(chosen(2, 4, {{1}}).message());
    all.merge(exec::ChosenExperts().message());
    CHECK(*all.of(1, 0, 1) == std::vector<std::int32_t>{2, 3});
    CHECK(*all.of(2, 0, 0) == std::vector<std::int32_t>{1});
    CHECK(all.of(2, 0, 1) == nullptr);
    CHECK(all.of(3, 0, 0) == nullptr);
}
