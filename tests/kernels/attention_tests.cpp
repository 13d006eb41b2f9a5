#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <limits>
#include <stdexcept>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

constexpr float infinity = std::numeric_limits<float>::infinity();

bool sees(const AttentionParams& params, std::size_t b, std::int64_t query, std::int64_t key) {
    const std::int64_t p = params.q_start[b] + query;
    const std::int64_t c = params.k_start + key;
    return c < params.k_valid[b] && (!params.causal || c <= p) && (params.window == 0 || c > p - params.window) &&
           (params.chunk == 0 || c >= p - p % params.chunk);
}

/// Straight from the definition, in double.
Tensor naive_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params) {
    const std::int64_t sq = q.shape()[1];
    const std::int64_t heads = q.shape()[2];
    const std::int64_t d = q.shape()[3];
    const std::int64_t dv = v.shape()[3];
    Tensor y({q.shape()[0], sq, heads, dv}, q.view().dtype);
    for (std::int64_t row = 0; row < q.shape()[0] * sq * heads; ++row) {
        const std::int64_t b = row / (sq * heads);
        const std::int64_t h = row % heads;
        const std::int64_t g = (params.q_head_start + h) / params.queries_per_kv - params.kv_head_start;
        std::vector<double> weights;
        const bool sinks = !params.sinks.empty();
        double total = sinks ? std::exp(static_cast<double>(params.sinks[static_cast<std::size_t>(h)])) : 0.0;
        for (std::int64_t j = 0; j < k.shape()[1]; ++j) {
            double score = 0.0;
            for (std::int64_t i = 0; i < d; ++i) {
                score += q[row * d + i] * k.at({b, j, g, i});
            }
            score *= static_cast<double>(params.scale);
            if (params.softcap > 0.0F) {
                const auto cap = static_cast<double>(params.softcap);
                score = cap * std::tanh(score / cap);
            }
            if (!params.alibi_slopes.empty()) {
                const float slope = params.alibi_slopes[static_cast<std::size_t>(h)];
                score += static_cast<double>(slope) * static_cast<double>(params.k_start + j);
            }
            const bool seen = sees(params, static_cast<std::size_t>(b), row / heads % sq, j);
            weights.push_back(seen ? std::exp(score) : 0.0);
            total += weights.back();
        }
        for (std::int64_t i = 0; i < dv && total > 0.0; ++i) {
            double sum = 0.0;
            for (std::int64_t j = 0; j < k.shape()[1]; ++j) {
                const double weight = weights[static_cast<std::size_t>(j)];
                sum += weight > 0.0 ? weight * v.at({b, j, g, i}) : 0.0;
            }
            y.set(row * dv + i, sum / total);
        }
    }
    return y;
}

struct Case {
    const char* name;
    std::int64_t sq, sk, heads, kv_heads, d;
    std::int64_t q_start, k_start, k_valid;
    AttentionParams params;
};

std::vector<Case> cases() {
    std::vector<Case> all = {
        {"prefill", 70, 70, 2, 2, 8, 0, 0, 70, {}},
        {"grouped", 33, 40, 6, 2, 9, 7, 0, 40, {}},
        {"decode in a long cache", 1, 300, 4, 1, 16, 199, 0, 200, {}},
        {"not causal", 5, 130, 1, 1, 4, 0, 0, 129, {}},
        {"window of one key", 80, 80, 1, 1, 4, 0, 0, 80, {}},
        {"window", 80, 90, 2, 1, 4, 10, 0, 90, {}},
        {"soft cap", 5, 5, 1, 1, 20, 0, 0, 5, {}},
        {"second shard of keys", 20, 10, 2, 2, 4, 0, 10, 18, {}},
        {"heads 3..6 of 8 over kv heads 1..3 of 4", 4, 4, 4, 3, 4, 0, 0, 4, {}},
        {"chunks", 80, 90, 2, 1, 4, 10, 0, 90, {}},
        {"decode at the start of a chunk", 1, 90, 2, 1, 4, 60, 0, 61, {}},
        {"no keys", 3, 0, 1, 1, 4, 0, 0, 3, {}},
        {"no queries", 0, 3, 1, 1, 4, 0, 0, 3, {}},
    };
    all[3].params.causal = false;
    all[4].params.window = 1;
    all[5].params.window = 17;
    all[6].params.softcap = 1.5F;
    all[8].params.q_head_start = 3;
    all[8].params.kv_head_start = 1;
    all[9].params.chunk = 13;
    all[10].params.chunk = 20;
    for (Case& row : all) {
        row.params.queries_per_kv = row.heads / row.kv_heads;
        row.params.scale = 0.5F;
    }
    all[8].params.queries_per_kv = 2;
    return all;
}

TEST_CASE("attention equals its definition") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (Case& row : cases()) {
            for (const DType dtype : {DType::f32, DType::bf16}) {
                CAPTURE(row.name);
                const std::array q_start = {row.q_start, row.q_start};
                const std::array k_valid = {row.k_valid, row.k_valid};
                row.params.q_start = q_start;
                row.params.k_start = row.k_start;
                row.params.k_valid = k_valid;
                const Tensor q = test::random_tensor(1, {2, row.sq, row.heads, row.d}, dtype);
                const Tensor k = test::random_tensor(2, {2, row.sk, row.kv_heads, row.d}, dtype);
                const Tensor v = test::random_tensor(3, {2, row.sk, row.kv_heads, row.d}, dtype);
                Tensor y = test::random_tensor(4, q.shape(), dtype);
                kernels->attention(q, k, v, row.params, y);
                CHECK(test::difference(y, naive_attention(q, k, v, row.params), test::tolerance(dtype)) == "");
            }
        }
    }
}

TEST_CASE("attention with ALiBi: bloom's as defined, falcon's rounded to bf16 and scaled") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<float, 2> slopes = {0.25F, 0.0625F};
    const std::array<std::int64_t, 1> q_start = {3};
    const std::array<std::int64_t, 1> k_valid = {7};
    AttentionParams params{.scale = 0.5F, .q_start = q_start, .k_valid = k_valid, .alibi_slopes = slopes};
    const Tensor q = test::random_tensor(1, {1, 4, 2, 4});
    const Tensor k = test::random_tensor(2, {1, 7, 2, 4});
    Tensor y(q.shape());
    kernels->attention(q, k, k, params, y);
    const Tensor expected = naive_attention(q, k, k, params);
    CHECK(test::difference(y, expected, 1e-5) == "");
    // With slopes and positions exact in bf16 falcon's bias is bloom's times the scale.
    const std::array<float, 2> doubled = {0.5F, 0.125F};
    params.alibi_slopes = doubled;
    params.alibi_in_bf16 = true;
    kernels->attention(q, k, k, params, y);
    CHECK(test::difference(y, expected, 1e-5) == "");
}

TEST_CASE("attention never reads the cache behind its valid part") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 2> q_start = {2, 4};
    const std::array<std::int64_t, 2> k_valid = {3, 5};
    const AttentionParams params{.q_start = q_start, .k_valid = k_valid};
    const Tensor q = test::random_tensor(1, {2, 1, 1, 4});
    Tensor k = test::random_tensor(2, {2, 8, 1, 4});
    const Tensor expected = naive_attention(q, k, k, params);
    for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t i = k_valid[static_cast<std::size_t>(b)] * 4; i < 32; ++i) {
            k.set(b * 32 + i, std::numeric_limits<double>::quiet_NaN());
        }
    }
    Tensor y(q.shape());
    kernels->attention(q, k, k, params, y);
    CHECK(test::difference(y, expected, 1e-5) == "");
}

/// Attention over keys cut at `cuts`, merged as the ranks do.
Tensor merged_attention(const Kernels& kernels, const Tensor& q, const Tensor& k, const Tensor& v,
                        AttentionParams params, const std::vector<std::int64_t>& cuts) {
    const tensor::Shape rows(q.shape().begin(), q.shape().end() - 1);
    const std::span<const float> sinks = params.sinks;
    std::vector<Tensor> outputs, maxima, sums;
    Tensor m_global(rows), l_global(rows), y(q.shape());
    for (std::int64_t i = 0; i < m_global.count(); ++i) {
        m_global.set(i, -infinity);
    }
    for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
        Tensor o(q.shape()), m(rows), l(rows);
        params.k_start = cuts[part];
        params.sinks = part == 0 ? sinks : std::span<const float>{};
        const base::Interval range{cuts[part], cuts[part + 1]};
        kernels.attention_partial(q, test::slice(k, 1, range), test::slice(v, 1, range), params, o, m, l);
        for (std::int64_t i = 0; i < m.count(); ++i) {
            m_global.set(i, std::max(m_global[i], m[i]));
        }
        outputs.push_back(o);
        maxima.push_back(m);
        sums.push_back(l);
    }
    for (std::size_t part = 0; part < outputs.size(); ++part) {
        kernels.softmax_rescale(sums[part], maxima[part], m_global, sums[part]);
        kernels.add(l_global, sums[part], l_global);
    }
    for (std::size_t part = 0; part < outputs.size(); ++part) {
        kernels.softmax_merge(outputs[part], maxima[part], m_global, l_global, outputs[part]);
        kernels.add(y, outputs[part], y);
    }
    return y;
}

TEST_CASE("a sink takes part in the softmax and has no value; of cut keys the first part has it") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<float, 4> sinks = {0.5F, -20.0F, 20.0F, -1.0F};
    const std::array<std::int64_t, 2> q_start = {0, 1};
    const std::array<std::int64_t, 2> k_valid = {9, 12};
    AttentionParams params{.scale = 0.5F, .q_start = q_start, .k_valid = k_valid, .queries_per_kv = 2, .sinks = sinks};
    const Tensor q = test::random_tensor(1, {2, 9, 4, 4});
    const Tensor k = test::random_tensor(2, {2, 12, 2, 4});
    Tensor y(q.shape());
    kernels->attention(q, k, k, params, y);
    const Tensor expected = naive_attention(q, k, k, params);
    CHECK(test::difference(y, expected, 1e-5) == "");
    for (const std::int64_t cut : {0, 1, 5, 12}) {
        CHECK(test::difference(merged_attention(*kernels, q, k, k, params, {0, cut, 12}), expected, 1e-5) == "");
    }
    params.sinks = std::span(sinks).first(3);
    CHECK_THROWS_AS(kernels->attention(q, k, k, params, y), std::invalid_argument);
}

TEST_CASE("partial attention over any cut of the keys, merged, is the whole attention") {
    const auto kernels = make_kernels(KernelSet::reference);
    CHECK(rc::check([&] {
        const auto sq = *rc::gen::inRange<std::int64_t>(1, 40);
        const auto sk = *rc::gen::inRange<std::int64_t>(1, 150);
        const auto group = *rc::gen::inRange<std::int64_t>(1, 4);
        const auto kv_heads = *rc::gen::inRange<std::int64_t>(1, 3);
        const std::array q_start = {*rc::gen::inRange<std::int64_t>(0, sk)};
        const std::array k_valid = {*rc::gen::inRange<std::int64_t>(0, sk + 1)};
        AttentionParams params{.scale = 0.3F, .q_start = q_start, .k_valid = k_valid, .queries_per_kv = group};
        params.causal = *rc::gen::arbitrary<bool>();
        params.softcap = *rc::gen::element(0.0F, 2.0F);
        params.window = *rc::gen::element<std::int64_t>(0, 1, 30);
        params.chunk = *rc::gen::element<std::int64_t>(0, 0, 1, 25);
        const auto first = *rc::gen::inRange<std::int64_t>(0, sk + 1);
        const auto second = *rc::gen::inRange<std::int64_t>(first, sk + 1);
        const Tensor q = test::random_tensor(1, {1, sq, group * kv_heads, 6});
        const Tensor k = test::random_tensor(2, {1, sk, kv_heads, 6});
        const Tensor v = test::random_tensor(3, {1, sk, kv_heads, 6});
        Tensor whole(q.shape());
        kernels->attention(q, k, v, params, whole);
        const Tensor merged = merged_attention(*kernels, q, k, v, params, {0, first, second, sk});
        RC_ASSERT(test::difference(merged, whole, 1e-5) == "");
        RC_ASSERT(test::difference(whole, naive_attention(q, k, v, params), 2e-5) == "");
    }));
}

/// The rows of dimension 1 in this order.
Tensor reordered(const Tensor& x, const std::vector<std::int64_t>& order) {
    Tensor result(x.shape(), x.view().dtype);
    const std::int64_t tokens = x.shape()[1];
    const std::int64_t width = x.count() / (x.shape()[0] * tokens);
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t row = i / width;
        const std::int64_t from = row / tokens * tokens + order[static_cast<std::size_t>(row % tokens)];
        result.set(i, x[from * width + i % width]);
    }
    return result;
}

/// Blocks of keys that pass by one after the other, `first` being the one that starts.
Tensor ring_attention(const Kernels& kernels, const Tensor& q, const Tensor& k, const Tensor& v, AttentionParams params,
                      const std::vector<base::Run>& blocks, std::size_t first) {
    const tensor::Shape rows(q.shape().begin(), q.shape().end() - 1);
    Tensor o(q.shape()), m(rows), l(rows), y(q.shape(), q.view().dtype);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const base::Run& block = blocks[(first + blocks.size() - i) % blocks.size()];
        const base::Interval range{block.first, block.first + block.count};
        const base::Run run{0, block.count, block.position};
        params.k_runs = {&run, 1};
        const Tensor keys = test::slice(k, 1, range);
        const Tensor values = test::slice(v, 1, range);
        if (i == 0) {
            kernels.attention_partial(q, keys, values, params, o, m, l);
        } else {
            kernels.attention_accumulate(q, keys, values, params, o, m, l);
        }
    }
    kernels.softmax_merge(o, m, m, l, y);
    return y;
}

TEST_CASE("tokens in another order and keys in passing blocks give the rows of the whole attention") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::vector<float> slopes = {0.5F, 0.25F, 0.125F, 0.0625F};
    CHECK(rc::check([&] {
        const auto parts = *rc::gen::inRange<std::int64_t>(1, 5);
        const auto chunk = *rc::gen::inRange<std::int64_t>(1, 20);
        const std::int64_t length = 2 * parts * chunk;
        const std::array<std::int64_t, 2> zeros = {0, 0};
        const std::array valid = {length, *rc::gen::inRange<std::int64_t>(0, length + 1)};
        AttentionParams params{.scale = 0.3F, .q_start = zeros, .k_valid = valid, .queries_per_kv = 2};
        params.causal = *rc::gen::arbitrary<bool>();
        params.window = *rc::gen::element<std::int64_t>(0, 1, 7, 30);
        params.alibi_slopes = *rc::gen::arbitrary<bool>() ? std::span<const float>(slopes) : std::span<const float>();
        const auto dtype = *rc::gen::element(DType::f32, DType::bf16);
        const Tensor q = test::random_tensor(1, {2, length, 4, 6}, dtype);
        const Tensor k = test::random_tensor(2, {2, length, 2, 6}, dtype);
        const Tensor v = test::random_tensor(3, {2, length, 2, 6}, dtype);
        Tensor whole(q.shape(), dtype);
        kernels->attention(q, k, v, params, whole);

        std::vector<std::int64_t> order;  // zig-zag: part i has chunks i and 2 parts - 1 - i
        std::vector<base::Run> runs;
        for (std::int64_t c = 0; c < 2 * parts; ++c) {
            const std::int64_t place = c % 2 == 0 ? c / 2 : 2 * parts - 1 - c / 2;
            runs.push_back({c * chunk, chunk, place * chunk});
            for (std::int64_t t = 0; t < chunk; ++t) {
                order.push_back(place * chunk + t);
            }
        }
        params.q_runs = runs;
        params.k_runs = runs;
        const Tensor turned = reordered(q, order);
        const Tensor expected = reordered(whole, order);
        Tensor y(q.shape(), dtype);
        kernels->attention(turned, reordered(k, order), reordered(v, order), params, y);
        RC_ASSERT(test::difference(y, expected, test::tolerance(dtype)) == "");
        const auto first = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, 2 * parts));
        const Tensor passed =
            ring_attention(*kernels, turned, reordered(k, order), reordered(v, order), params, runs, first);
        RC_ASSERT(test::difference(passed, expected, test::tolerance(dtype)) == "");
    }));
}

TEST_CASE("keys that no query sees are not read and change nothing") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 1> q_start = {4};
    const std::array<std::int64_t, 1> k_valid = {12};
    const Tensor q = test::random_tensor(1, {1, 4, 1, 4});
    const Tensor k = test::random_tensor(2, {1, 4, 1, 4});
    Tensor behind({1, 4, 1, 4});
    for (std::int64_t i = 0; i < behind.count(); ++i) {
        behind.set(i, std::numeric_limits<double>::quiet_NaN());
    }
    Tensor o(q.shape()), m({1, 4, 1}), l({1, 4, 1});
    AttentionParams params{.q_start = q_start, .k_start = 4, .k_valid = k_valid};
    kernels->attention_partial(q, k, k, params, o, m, l);
    const Tensor o_before = o, m_before = m, l_before = l;
    params.k_start = 8;  // after all queries
    kernels->attention_accumulate(q, behind, behind, params, o, m, l);
    params.k_start = 0;  // before the window of all queries
    params.window = 1;
    kernels->attention_accumulate(q, behind, behind, params, o, m, l);
    CHECK(o == o_before);
    CHECK(m == m_before);
    CHECK(l == l_before);
}

TEST_CASE("runs must tile the rows") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 1> zero = {0};
    const Tensor q({1, 4, 1, 4});
    Tensor y(q.shape());
    for (const std::vector<base::Run>& runs :
         {std::vector<base::Run>{{0, 2, 0}}, {{0, 2, 0}, {3, 1, 3}}, {{1, 3, 0}}, {{0, 5, 0}}}) {
        AttentionParams params{.q_start = zero, .k_valid = zero};
        params.k_runs = runs;
        CHECK_THROWS_AS(kernels->attention(q, q, q, params, y), std::invalid_argument);
    }
}

TEST_CASE("a shard without visible keys gives -inf, 0 and 0, and merges without NaN") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 1> q_start = {0};
    const std::array<std::int64_t, 1> k_valid = {4};
    const Tensor q = test::random_tensor(1, {1, 2, 1, 4});
    const Tensor k = test::random_tensor(2, {1, 2, 1, 4});
    Tensor o = test::random_tensor(3, q.shape());
    Tensor m({1, 2, 1}), l({1, 2, 1});
    kernels->attention_partial(q, k, k, {.q_start = q_start, .k_start = 2, .k_valid = k_valid}, o, m, l);
    CHECK(o == Tensor(q.shape()));
    CHECK(m == Tensor({1, 2, 1}, {-infinity, -infinity}));
    CHECK(l == Tensor({1, 2, 1}));
    kernels->softmax_rescale(l, m, m, l);
    CHECK(l == Tensor({1, 2, 1}));
    kernels->softmax_merge(o, m, m, l, o);
    CHECK(o == Tensor(q.shape()));
}

TEST_CASE("attention refuses heads whose keys are not here") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 1> one = {1};
    const Tensor q({1, 1, 4, 4});
    const Tensor k({1, 1, 1, 4});
    Tensor y(q.shape());
    const AttentionParams params{.q_start = one, .k_valid = one, .q_head_start = 4, .queries_per_kv = 2};
    CHECK_THROWS_WITH_AS(kernels->attention(q, k, k, params, y),
                         "attention: query heads 4..7 need kv heads 2..3, here are 0..0", std::invalid_argument);
}

}  // namespace
}  // namespace shardplan::kernels
