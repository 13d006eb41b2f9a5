// Routing by tables worked out by hand and against a naive router; experts against one expert after the other in
// double.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

using namespace shardplan;
using kernels::GroupScore;
using kernels::RouteParams;
using kernels::RouterScore;
using test::DType;
using test::Tensor;

namespace {

const auto reference = kernels::make_kernels(kernels::KernelSet::reference);

std::vector<double> route(const std::vector<float>& logits, const RouteParams& params,
                          const std::vector<float>& correction = {}) {
    const Tensor x({1, std::ssize(logits)}, logits);
    Tensor routing({1, std::ssize(logits)});
    if (correction.empty()) {
        reference->route(x, {}, params, routing);
    } else {
        reference->route(x, Tensor({std::ssize(correction)}, correction), params, routing);
    }
    std::vector<double> result;
    for (std::int64_t i = 0; i < routing.count(); ++i) {
        result.push_back(routing[i]);
    }
    return result;
}

float ln(double x) {
    return static_cast<float>(std::log(x));
}

/// The logit whose sigmoid is p.
float logit(double p) {
    return ln(p / (1.0 - p));
}

struct Row {
    const char* name;
    std::vector<float> logits;
    RouteParams params;
    std::vector<float> correction;
    std::vector<double> weights;
};

const Row rows[] = {
    {"softmax over all, not normalised", {ln(1), ln(2), ln(4), ln(3)}, {.top_k = 2}, {}, {0, 0, 0.4, 0.3}},
    {"normalised", {ln(1), ln(2), ln(4), ln(3)}, {.top_k = 2, .normalise = true}, {}, {0, 0, 4.0 / 7, 3.0 / 7}},
    {"scaled", {ln(1), ln(3)}, {.top_k = 1, .scale = 2.0}, {}, {0, 1.5}},
    {"softmax of the chosen",
     {ln(1), ln(2), ln(4), ln(3)},
     {.top_k = 2, .score = RouterScore::top_softmax},
     {},
     {0, 0, 4.0 / 7, 3.0 / 7}},
    {"of equal scores the first", {1, 2, 2, 2}, {.top_k = 2, .normalise = true}, {}, {0, 0.5, 0.5, 0}},
    {"sigmoid", {logit(0.2), logit(0.6), logit(0.5)}, {.top_k = 2, .score = RouterScore::sigmoid}, {}, {0, 0.6, 0.5}},
    {"a correction chooses but does not weigh",
     {logit(0.2), logit(0.6), logit(0.5)},
     {.top_k = 2, .score = RouterScore::sigmoid, .normalise = true},
     {1.0F, 0.0F, 0.0F},
     {0.25, 0.75, 0}},
    {"groups by their best expert",
     {logit(0.9), logit(0.1), logit(0.5), logit(0.6)},
     {.top_k = 2, .score = RouterScore::sigmoid, .groups = 2},
     {},
     {0.9, 0.1, 0, 0}},
    {"groups by their two best",
     {logit(0.9), logit(0.1), logit(0.5), logit(0.6)},
     {.top_k = 2, .score = RouterScore::sigmoid, .groups = 2, .group_score = GroupScore::top_two_sum},
     {},
     {0, 0, 0.5, 0.6}},
    // Near 2.0 is what lies within 2 * 0.05 * 2.0 of it: 1.85 is, 1.7 is not; near 1.85 is also 1.7.
    {"sparse mixer",
     {2.0F, 1.85F, 1.7F, -1.0F},
     {.top_k = 2, .score = RouterScore::sparse_mixer, .jitter = 0.05},
     {},
     {1 / (1 + std::exp(-0.15)), 1 / (1 + std::exp(-0.15)), 0, 0}},
    {"sparse mixer, nothing near", {2.0F, 0.5F}, {.top_k = 2, .score = RouterScore::sparse_mixer}, {}, {1, 1}},
};

/// Counts for each expert how many are better; no sorting.
std::vector<double> naive_softmax_route(const std::vector<float>& logits, std::int64_t top_k) {
    double sum = 0.0;
    for (const float x : logits) {
        sum += std::exp(static_cast<double>(x));
    }
    std::vector<double> weights(logits.size(), 0.0);
    for (std::size_t x = 0; x < logits.size(); ++x) {
        std::int64_t better = 0;
        for (std::size_t other = 0; other < logits.size(); ++other) {
            better += logits[other] > logits[x] || (logits[other] == logits[x] && other < x) ? 1 : 0;
        }
        weights[x] = better < top_k ? std::exp(static_cast<double>(logits[x])) / sum : 0.0;
    }
    return weights;
}

struct Weights {
    Tensor gate, up, down;
};

kernels::ExpertWeights of(const Weights& w) {
    return {w.gate, w.up, w.down, {}, {}, {}};
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

Tensor naive_experts(const Tensor& x, const Tensor& routing, const Weights& w) {
    const std::int64_t in = x.shape().back();
    const std::int64_t experts = w.gate.shape()[0];
    const std::int64_t inner = w.gate.shape()[1];
    const std::int64_t out = w.down.shape()[1];
    const std::int64_t tokens = x.count() / in;
    Tensor y({tokens, out});
    for (std::int64_t t = 0; t < tokens; ++t) {
        std::vector<double> sums(static_cast<std::size_t>(out), 0.0);
        for (std::int64_t e = 0; e < experts; ++e) {
            for (std::int64_t f = 0; f < inner; ++f) {
                double g = 0.0;
                double u = 0.0;
                for (std::int64_t i = 0; i < in; ++i) {
                    g += x[t * in + i] * w.gate.at({e, f, i});
                    u += x[t * in + i] * w.up.at({e, f, i});
                }
                for (std::int64_t o = 0; o < out; ++o) {
                    sums[static_cast<std::size_t>(o)] += routing[t * experts + e] * silu(g) * u * w.down.at({e, o, f});
                }
            }
        }
        for (std::int64_t o = 0; o < out; ++o) {
            y.set(t * out + o, sums[static_cast<std::size_t>(o)]);
        }
    }
    return y;
}

Weights weights(std::int64_t experts, std::int64_t inner, std::int64_t in, std::int64_t out, DType dtype) {
    return {test::random_tensor(1, {experts, inner, in}, dtype), test::random_tensor(2, {experts, inner, in}, dtype),
            test::random_tensor(3, {experts, out, inner}, dtype)};
}

Tensor routing_of(std::int64_t tokens, std::int64_t experts, std::int64_t top_k) {
    Tensor routing({tokens, experts});
    reference->route(test::random_tensor(4, {tokens, experts}), {}, {.top_k = top_k}, routing);
    return routing;
}

}  // namespace

TEST_CASE("the weights of experts") {
    for (const Row& row : rows) {
        CAPTURE(std::string(row.name));
        const std::vector<double> weights = route(row.logits, row.params, row.correction);
        REQUIRE(weights.size() == row.weights.size());
        for (std::size_t i = 0; i < weights.size(); ++i) {
            CAPTURE(i);
            CHECK(weights[i] == doctest::Approx(row.weights[i]).epsilon(1e-5));
        }
    }
}

TEST_CASE("many tokens are routed as each alone, by a router without sorting") {
    const std::int64_t experts = 13;
    const Tensor logits = test::random_tensor(9, {3, 5, experts});
    for (const std::int64_t top_k : {1, 4, 13}) {
        Tensor routing({3, 5, experts});
        reference->route(logits, {}, {.top_k = top_k}, routing);
        for (std::int64_t t = 0; t < 15; ++t) {
            std::vector<float> row;
            for (std::int64_t e = 0; e < experts; ++e) {
                row.push_back(static_cast<float>(logits[t * experts + e]));
            }
            const std::vector<double> expected = naive_softmax_route(row, top_k);
            for (std::int64_t e = 0; e < experts; ++e) {
                CHECK(routing[t * experts + e] == doctest::Approx(expected[static_cast<std::size_t>(e)]).epsilon(1e-6));
            }
        }
    }
}

TEST_CASE("experts equal the sum over all of them, token by token") {
    for (const auto set : {kernels::KernelSet::reference, kernels::KernelSet::onednn}) {
        const auto kernels = kernels::make_kernels(set);
        for (const DType dtype : {DType::f32, DType::bf16}) {
            const Weights w = weights(5, 6, 8, 7, dtype);
            const Tensor x = test::random_tensor(5, {3, 4, 8}, dtype);
            const Tensor routing = routing_of(12, 5, 2);
            Tensor y({3, 4, 7}, dtype);
            const Tensor shaped = test::Tensor({3, 4, 5}, [&] {
                std::vector<float> values;
                for (std::int64_t i = 0; i < routing.count(); ++i) {
                    values.push_back(static_cast<float>(routing[i]));
                }
                return values;
            }());
            kernels->experts(x, shaped, of(w), {}, y);
            const Tensor expected = naive_experts(x, routing, w);
            Tensor flat({12, 7});
            for (std::int64_t i = 0; i < flat.count(); ++i) {
                flat.set(i, y[i]);
            }
            // In bf16 the values between the products are rounded as well, and the sums are some tens.
            CHECK(test::difference(flat, expected, dtype == DType::f32 ? 2e-5 : 4e-2) == "");
        }
    }
}

namespace {

/// [X, in, out] of [X, out, in].
Tensor turned(const Tensor& w) {
    const tensor::Shape& s = w.shape();
    Tensor result({s[0], s[2], s[1]}, w.view().dtype);
    for (std::int64_t i = 0; i < w.count(); ++i) {
        const std::int64_t matrix = i / (s[1] * s[2]);
        result.set((matrix * s[2] + i % s[2]) * s[1] + i / s[2] % s[1], w[i]);
    }
    return result;
}

}  // namespace

TEST_CASE("grouped and transposed experts are those computed one by one, to the bit with the same activation") {
    for (const auto set : {kernels::KernelSet::reference, kernels::KernelSet::onednn}) {
        const auto kernels = kernels::make_kernels(set);
        for (const DType dtype : {DType::f32, DType::bf16}) {
            const Weights w = weights(5, 70, 8, 50, dtype);
            const Tensor x = test::random_tensor(5, {90, 8}, dtype);
            const Tensor routing = routing_of(90, 5, 2);
            Tensor expected({90, 50}, dtype), grouped({90, 50}, dtype), flipped({90, 50}, dtype);
            reference->experts(x, routing, of(w), {}, expected);
            kernels->experts(x, routing, of(w), {.grouped = true}, grouped);
            const double bound = set == kernels::KernelSet::reference ? 0.0 : test::tolerance(dtype);
            CHECK(test::difference(grouped, expected, bound) == "");
            const Tensor gate = turned(w.gate), up = turned(w.up), down = turned(w.down);
            const auto in_out = kernels::WeightOrder::in_out;
            kernels->experts(x, routing, {gate, up, down, {}, {}, {}},
                             {.gate_up_order = in_out, .down_order = in_out, .grouped = true}, flipped);
            CHECK(test::difference(flipped, expected, bound) == "");
        }
    }
}

TEST_CASE("a grouped product is that of each group") {
    const Tensor w = test::random_tensor(1, {3, 50, 9});
    const Tensor x = test::random_tensor(2, {130, 9});
    const std::vector<std::int64_t> first_rows = {0, 70, 70, 130};
    Tensor y({130, 50});
    reference->grouped_matmul(x, w, kernels::WeightOrder::out_in, first_rows, y);
    for (std::int64_t g = 0; g < 3; ++g) {
        const base::Interval rows{first_rows[static_cast<std::size_t>(g)], first_rows[static_cast<std::size_t>(g) + 1]};
        Tensor weight({50, 9});
        for (std::int64_t i = 0; i < weight.count(); ++i) {
            weight.set(i, w[g * weight.count() + i]);
        }
        Tensor part({rows.size(), 50});
        reference->matmul_plain(slice(x, 0, rows), weight, kernels::WeightOrder::out_in, part);
        CHECK(slice(y, 0, rows) == part);
    }
    for (const std::vector<std::int64_t>& wrong :
         {std::vector<std::int64_t>{0, 70, 130}, {0, 70, 60, 130}, {0, 1, 2, 3}, {1, 2, 3, 130}}) {
        CHECK_THROWS(reference->grouped_matmul(x, w, kernels::WeightOrder::out_in, wrong, y));
    }
}

TEST_CASE("biases, the clamped activation and scaled inputs of experts, by hand") {
    // One expert, one input, one inner value: gate 2 x + 1, up 3 x - 1, down 0.5 a + 4.
    const Tensor gate({1, 1, 1}, {2}), up({1, 1, 1}, {3}), down({1, 1, 1}, {0.5F});
    const Tensor gate_bias({1, 1}, {1}), up_bias({1, 1}, {-1}), down_bias({1, 1}, {4});
    const auto run = [&](float x, float weight, const kernels::ExpertParams& params, bool biased) {
        kernels::ExpertWeights w{gate, up, down, {}, {}, {}};
        if (biased) {
            w.gate_bias = gate_bias;
            w.up_bias = up_bias;
            w.down_bias = down_bias;
        }
        Tensor y({1, 1});
        reference->experts(Tensor({1, 1}, {x}), Tensor({1, 1}, {weight}), w, params, y);
        return y[0];
    };
    const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
    CHECK(run(1.0F, 0.5F, {}, true) == doctest::Approx(0.5 * (0.5 * silu(3.0) * 2.0 + 4.0)));
    CHECK(run(1.0F, 0.5F, {.scale_input = true}, false) == doctest::Approx(0.5 * silu(1.0) * 1.5));
    // gate 3, up 2, then gate min(7, 6.5) and up min(8, 6.5), then gate -5 and up max(-10, -6.5).
    CHECK(run(1.0F, 1.0F, {.swiglu_limit = 7.0F}, true) ==
          doctest::Approx(0.5 * 3.0 * sigmoid(1.702 * 3.0) * 3.0 + 4.0));
    CHECK(run(3.0F, 1.0F, {.swiglu_limit = 6.5F}, true) ==
          doctest::Approx(0.5 * 6.5 * sigmoid(1.702 * 6.5) * 7.5 + 4.0));
    CHECK(run(-3.0F, 1.0F, {.swiglu_limit = 6.5F}, true) ==
          doctest::Approx(0.5 * -5.0 * sigmoid(1.702 * -5.0) * -5.5 + 4.0));
}

TEST_CASE("rows times the factor of their token") {
    Tensor y({2, 2, 2});
    const std::vector<float> factors = {1.0F, 2.0F, 0.5F, -1.0F};
    reference->scale_rows(Tensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), factors, y);
    CHECK(y == Tensor({2, 2, 2}, {1, 2, 6, 8, 2.5F, 3, -7, -8}));
    CHECK_THROWS(reference->scale_rows(Tensor({3, 1}), factors, y));
}

TEST_CASE("experts and their inner dimension may be cut: the parts add up") {
    const Weights w = weights(4, 6, 8, 8, DType::f32);
    const Tensor x = test::random_tensor(5, {10, 8});
    const Tensor routing = routing_of(10, 4, 2);
    Tensor whole({10, 8});
    reference->experts(x, routing, of(w), {}, whole);
    Tensor sum({10, 8});
    for (const base::Interval e : {base::Interval{0, 1}, base::Interval{1, 4}}) {
        for (const base::Interval f : {base::Interval{0, 2}, base::Interval{2, 6}}) {
            const auto cut = [&](const Tensor& t, std::size_t dim) { return slice(slice(t, 0, e), dim, f); };
            Tensor part({10, 8});
            reference->experts(x, slice(routing, 1, e), {cut(w.gate, 1), cut(w.up, 1), cut(w.down, 2), {}, {}, {}}, {},
                               part);
            reference->add(sum, part, sum);
        }
    }
    CHECK(test::difference(sum, whole, 2e-5) == "");
}

TEST_CASE("an expert without tokens, no expert and no token") {
    const Weights w = weights(2, 3, 4, 4, DType::f32);
    Tensor y({2, 4}, std::vector<float>(8, -1.0F));
    reference->experts(test::random_tensor(5, {2, 4}), Tensor({2, 2}), of(w), {}, y);
    CHECK(y == Tensor({2, 4}));
    const Weights none = weights(0, 3, 4, 4, DType::f32);
    Tensor z({2, 4}, std::vector<float>(8, -1.0F));
    reference->experts(test::random_tensor(5, {2, 4}), Tensor({2, 0}), of(none), {}, z);
    CHECK(z == Tensor({2, 4}));
    Tensor empty({0, 4});
    reference->experts(Tensor({0, 4}), Tensor({0, 2}), of(w), {}, empty);
}

TEST_CASE("rows times the sigmoid of their gate") {
    Tensor y({2, 2});
    reference->gate_rows(Tensor({2, 2}, {1, 2, 3, 4}), Tensor({2, 1}, {0.0F, logit(0.25)}), y);
    CHECK(test::difference(y, Tensor({2, 2}, {0.5F, 1.0F, 0.75F, 1.0F}), 1e-6) == "");
}

TEST_CASE("wrong shapes and impossible choices are refused") {
    const Weights w = weights(2, 3, 4, 4, DType::f32);
    Tensor y({2, 4});
    CHECK_THROWS(reference->experts(Tensor({2, 5}), Tensor({2, 2}), of(w), {}, y));
    CHECK_THROWS(reference->experts(Tensor({2, 4}), Tensor({2, 3}), of(w), {}, y));
    CHECK_THROWS(route({1, 2}, {.top_k = 3}));
    CHECK_THROWS(route({1, 2, 3}, {.groups = 2}));
    CHECK_THROWS(route({1, 2, 3, 4}, {.top_k = 3, .groups = 2}));
    CHECK_THROWS(route({1, 2}, {}, {1.0F, 2.0F, 3.0F}));
}
