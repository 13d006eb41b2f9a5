// Tokens on their way to experts and back: a table by hand, and that sending, computing and summing is the same as
// computing all experts in one place.
#include "kernels/dispatch.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using base::Interval;
using test::DType;
using test::Tensor;

std::vector<Interval> even_experts(std::int64_t ranks, std::int64_t each) {
    std::vector<Interval> experts;
    for (std::int64_t p = 0; p < ranks; ++p) {
        experts.push_back({p * each, (p + 1) * each});
    }
    return experts;
}

std::int64_t count_of(const Tensor& counts, std::size_t rank) {
    return counts.view().as<std::int64_t>()[rank];
}

/// What one rank sends.
struct Sent {
    Sent(std::int64_t room, std::int64_t width, std::int64_t ranks, std::int64_t each, DType dtype = DType::f32)
        : rows({room, width}, dtype), routing({room, each}), tokens({room}, DType::i32), counts({ranks}, DType::i64) {}
    DispatchBuffers buffers() { return {rows, routing, tokens, counts}; }
    Tensor rows, routing, tokens, counts;
};

}  // namespace

TEST_CASE("each token goes once to each rank that holds experts of it, ordered by rank, then by token") {
    // Two ranks with two experts each; token 0 uses experts 0 and 1, token 1 uses 1 and 2, token 2 uses 3.
    const Tensor x({3, 1}, {10, 20, 30});
    const Tensor routing({3, 4}, {0.5F, 0.25F, 0, 0, 0, 0.125F, 0.75F, 0, 0, 0, 0, 1});
    Sent sent(6, 1, 2, 2);
    dispatch_tokens(x, routing, even_experts(2, 2), sent.buffers());
    CHECK(count_of(sent.counts, 0) == 2);
    CHECK(count_of(sent.counts, 1) == 2);
    CHECK(row_count(sent.counts) == 4);
    CHECK(test::slice(sent.rows, 0, {0, 4}) == Tensor({4, 1}, {10, 20, 20, 30}));
    CHECK(test::slice(sent.routing, 0, {0, 4}) == Tensor({4, 2}, {0.5F, 0.25F, 0, 0.125F, 0.75F, 0, 0, 1}));
    CHECK(test::slice(sent.tokens, 0, {0, 4}) == Tensor({4}, {0, 1, 1, 2}, DType::i32));
    Tensor y({3, 1});
    combine_tokens(Tensor({6, 1}, {1, 2, 4, 8, 100, 100}), sent.tokens, sent.counts, y);
    CHECK(y == Tensor({3, 1}, {1, 6, 8}));
}

TEST_CASE("a token without experts gives zeros; too little room and wrong shapes are refused") {
    Sent sent(2, 1, 2, 1);
    dispatch_tokens(Tensor({2, 1}, {1, 2}), Tensor({2, 2}, {0, 0, 0, 1}), even_experts(2, 1), sent.buffers());
    CHECK(count_of(sent.counts, 0) == 0);
    CHECK(count_of(sent.counts, 1) == 1);
    Tensor y({2, 1}, {7, 7});
    combine_tokens(sent.rows, sent.tokens, sent.counts, y);
    CHECK(y == Tensor({2, 1}, {0, 2}));
    const Tensor both({2, 2}, {1, 1, 1, 1});
    CHECK_THROWS(dispatch_tokens(Tensor({2, 1}), both, even_experts(2, 1), sent.buffers()));
    CHECK_THROWS(dispatch_tokens(Tensor({2, 1}), both, even_experts(3, 1), sent.buffers()));
    CHECK_THROWS(dispatch_tokens(Tensor({2, 2}), both, even_experts(2, 1), sent.buffers()));
    Tensor wide({2, 2});
    CHECK_THROWS(combine_tokens(sent.rows, sent.tokens, sent.counts, wide));
}

TEST_CASE("sent, computed and summed is computed in one place") {
    const auto kernels = make_kernels(KernelSet::reference);
    CHECK(rc::check([&] {
        const auto ranks = *rc::gen::inRange<std::int64_t>(1, 5);
        const auto each = *rc::gen::inRange<std::int64_t>(1, 4);
        const auto tokens = *rc::gen::inRange<std::int64_t>(0, 12);
        const auto top_k = *rc::gen::inRange<std::int64_t>(1, ranks * each + 1);
        const std::int64_t all = ranks * each;
        const Tensor x = test::random_tensor(1, {tokens, 6});
        const Tensor gate = test::random_tensor(2, {all, 5, 6});
        const Tensor up = test::random_tensor(3, {all, 5, 6});
        const Tensor down = test::random_tensor(4, {all, 7, 5});
        Tensor routing({tokens, all}), expected({tokens, 7}), y({tokens, 7});
        kernels->route(test::random_tensor(5, {tokens, all}), {}, {.top_k = top_k}, routing);
        kernels->experts(x, routing, {gate, up, down, {}, {}, {}}, {}, expected);
        const std::int64_t room = tokens * std::min(top_k, ranks);
        Sent sent(room, 6, ranks, each);
        dispatch_tokens(x, routing, even_experts(ranks, each), sent.buffers());
        Tensor returned({room, 7});
        std::int64_t first = 0;
        for (std::int64_t p = 0; p < ranks; ++p) {
            const Interval rows{first, first + count_of(sent.counts, static_cast<std::size_t>(p))};
            const Interval own{p * each, (p + 1) * each};
            Tensor part({rows.size(), 7});
            kernels->experts(
                test::slice(sent.rows, 0, rows), test::slice(sent.routing, 0, rows),
                {test::slice(gate, 0, own), test::slice(up, 0, own), test::slice(down, 0, own), {}, {}, {}},
                {.grouped = true}, part);
            for (std::int64_t i = 0; i < part.count(); ++i) {
                returned.set(first * 7 + i, part[i]);
            }
            first = rows.end;
        }
        combine_tokens(returned, sent.tokens, sent.counts, y);
        RC_ASSERT(test::difference(y, expected, 2e-5) == "");
    }));
}

}  // namespace shardplan::kernels
