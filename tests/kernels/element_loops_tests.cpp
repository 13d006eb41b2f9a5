#include "kernels/reference/element_loops.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "kernels/tensors.h"

// Every instruction set this machine has, against the functions in double.
namespace shardplan::kernels {
namespace {

using test::Tensor;

/// Floats of all magnitudes and both signs, subnormal ones included; no NaN.
std::vector<float> all_magnitudes() {
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 20011) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (!std::isnan(value)) {
            values.push_back(value);
        }
    }
    for (int i = -20000; i <= 20000; ++i) {  // more of those where something happens
        values.push_back(static_cast<float>(i) * 0.00731F);
    }
    values.push_back(INFINITY);
    values.push_back(-INFINITY);
    return values;
}

/// In units of the last place of what is exact.
double error_in_ulp(float value, double exact) {
    if (std::isinf(static_cast<float>(exact)) || exact == 0.0) {
        return value == static_cast<float>(exact) ? 0.0 : INFINITY;
    }
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact) - 23, -149));
    return std::abs(static_cast<double>(value) - exact) / ulp;
}

double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}

double exact_value(Map op, float value) {
    const auto x = static_cast<double>(value);
    if (x == -INFINITY && op != Map::softcap) {
        return 0.0;
    }
    switch (op) {
        case Map::silu: return x * sigmoid(x);
        case Map::quick_gelu: return x * sigmoid(static_cast<double>(1.702F * value));
        case Map::gelu: return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
        case Map::gelu_tanh: return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
        default: return std::tanh(x);  // softcap with 1
    }
}

TEST_CASE("element loops: activations are as exact as promised for every argument") {
    const std::vector<float> x = all_magnitudes();
    const auto count = static_cast<std::int64_t>(x.size());
    std::vector<float> y(x.size());
    for (const ElementLoops& loops : available_element_loops()) {
        for (const auto& [op, bound] : {std::pair{Map::silu, 3.0}, std::pair{Map::quick_gelu, 3.0},
                                        std::pair{Map::gelu, 6.0}, std::pair{Map::softcap, 3.0}}) {
            loops.f32.map(op, 1.0F, x.data(), count, y.data());
            double worst = 0.0;
            float where = 0.0F;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double error = error_in_ulp(y[i], exact_value(op, x[i]));
                where = error > worst ? x[i] : where;
                worst = std::max(worst, error);
            }
            CAPTURE(std::string(loops.name));
            CAPTURE(static_cast<int>(op));
            CAPTURE(where);
            CHECK(worst <= bound);
        }
    }
}

TEST_CASE("element loops: the error of gelu_tanh grows with its exponent") {
    const std::vector<float> x = all_magnitudes();
    std::vector<float> y(x.size());
    for (const ElementLoops& loops : available_element_loops()) {
        CAPTURE(std::string(loops.name));
        loops.f32.map(Map::gelu_tanh, 0.0F, x.data(), static_cast<std::int64_t>(x.size()), y.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double z = std::min(0.0, 1.6 * (x[i] + 0.045 * std::pow(static_cast<double>(x[i]), 3)));
            const double error = error_in_ulp(y[i], exact_value(Map::gelu_tanh, x[i]));
            if (!(error <= 4.0 - 3.0 * z)) {
                FAIL_CHECK(x[i] << " gives " << y[i] << ", off by " << error << " ulp");
            }
        }
    }
}

TEST_CASE("element loops: NaN stays NaN, infinities give limits") {
    for (const ElementLoops& loops : available_element_loops()) {
        CAPTURE(std::string(loops.name));
        for (int i = 0; i <= static_cast<int>(Map::clip); ++i) {
            CAPTURE(i);
            const auto op = static_cast<Map>(i);
            std::vector<float> values = {NAN, -NAN, INFINITY, -INFINITY, -0.0F};
            loops.f32.map(op, 2.0F, values.data(), 5, values.data());
            CHECK(std::isnan(values[0]));
            CHECK(std::isnan(values[1]));
            CHECK(values[2] == (op >= Map::softcap ? 2.0F : INFINITY));
            CHECK(values[3] == (op >= Map::softcap ? -2.0F : op == Map::scale ? -INFINITY : 0.0F));
            CHECK(values[4] == 0.0F);
        }
        float gate[] = {NAN, 1.0F, 100.0F, -100.0F};
        const float up[] = {1.0F, NAN, 100.0F, -100.0F};
        loops.clamped_glu(gate, up, 7.0F, 4, gate);
        CHECK(std::isnan(gate[0]));
        CHECK(std::isnan(gate[1]));
        CHECK(gate[2] == doctest::Approx(7 * sigmoid(1.702 * 7) * 8));
        CHECK(std::abs(gate[3]) < 1e-30F);
    }
}

/// The bits of function(elements) of a row do not depend on where they stand in a longer one.
template <typename Function>
void check_places(Function function) {
    const Tensor x = test::random_tensor(1, {61});
    const Tensor other = test::random_tensor(2, {61});
    Tensor whole({61});
    const auto* a = x.view().as<float>();
    const auto* b = other.view().as<float>();
    function(a, b, 61, whole.view().as<float>());
    for (const std::int64_t begin : {0, 1, 7, 33}) {
        for (const std::int64_t n : {1, 3, 16, 27}) {
            Tensor part({n});
            function(a + begin, b + begin, n, part.view().as<float>());
            CHECK(part == test::slice(whole, 0, {begin, begin + n}));
        }
    }
}

TEST_CASE("element loops: an element's result does not depend on its place") {
    for (const ElementLoops& loops : available_element_loops()) {
        CAPTURE(std::string(loops.name));
        for (int i = 0; i <= static_cast<int>(Map::clip); ++i) {
            CAPTURE(i);
            check_places([&](const float* a, const float* /*b*/, std::int64_t n, float* y) {
                loops.f32.map(static_cast<Map>(i), 0.7F, a, n, y);
            });
        }
        for (int i = 0; i <= static_cast<int>(Activation::relu2); ++i) {
            check_places([&](const float* a, const float* b, std::int64_t n, float* y) {
                loops.f32.glu(static_cast<Activation>(i), a, b, n, y);
            });
        }
        check_places(
            [&](const float* a, const float* b, std::int64_t n, float* y) { loops.clamped_glu(a, b, 0.5F, n, y); });
        check_places([&](const float* a, const float* b, std::int64_t n, float* y) {
            std::copy(a, a + n, y);
            loops.add_scaled(b, 0.3F, n, y);
        });
    }
}

TEST_CASE("element loops: bf16 is f32 rounded once, and a product is that of its factors") {
    const Tensor a = test::random_tensor(1, {45}, test::DType::bf16);
    const Tensor b = test::random_tensor(2, {45}, test::DType::bf16);
    Tensor wide_a({45}), wide_b({45}), wide({45}), narrow({45}, test::DType::bf16);
    for (std::int64_t i = 0; i < 45; ++i) {
        wide_a.set(i, a[i]);
        wide_b.set(i, b[i]);
    }
    const auto check = [&] {
        for (std::int64_t i = 0; i < 45; ++i) {
            CHECK(narrow.view().as<std::uint16_t>()[i] == tensor::bf16_from_float(wide.view().as<float>()[i]));
        }
    };
    for (const ElementLoops& loops : available_element_loops()) {
        CAPTURE(std::string(loops.name));
        for (const Activation activation : {Activation::silu, Activation::gelu, Activation::relu2}) {
            loops.bf16.glu(activation, a.view().as<std::uint16_t>(), b.view().as<std::uint16_t>(), 45,
                           narrow.view().as<std::uint16_t>());
            loops.f32.glu(activation, wide_a.view().as<float>(), wide_b.view().as<float>(), 45,
                          wide.view().as<float>());
            check();
            loops.f32.map(static_cast<Map>(activation), 0.0F, wide_a.view().as<float>(), 45, wide.view().as<float>());
            loops.bf16.map(static_cast<Map>(activation), 0.0F, a.view().as<std::uint16_t>(), 45,
                           narrow.view().as<std::uint16_t>());
            check();
        }
    }
}

TEST_CASE("element loops: cosines and sines are those of double, rounded") {
    std::vector<float> frequencies;
    for (int i = 0; i < 37; ++i) {
        frequencies.push_back(static_cast<float>(std::pow(500000.0, -i / 37.0)));
    }
    frequencies.push_back(1e7F);  // more than the fast way can take
    const auto count = static_cast<std::int64_t>(frequencies.size());
    std::vector<float> cos(frequencies.size());
    std::vector<float> sin(frequencies.size());
    for (const ElementLoops& loops : available_element_loops()) {
        CAPTURE(std::string(loops.name));
        for (const float position : {0.0F, 1.0F, 11.0F, 8191.0F, 131071.0F, 999999.0F, -3.0F}) {
            loops.cos_sin(position, frequencies.data(), count, cos.data(), sin.data());
            for (std::size_t i = 0; i < frequencies.size(); ++i) {
                const auto angle = static_cast<double>(position * frequencies[i]);
                CHECK(error_in_ulp(cos[i], std::cos(angle)) <= 0.51);
                CHECK(error_in_ulp(sin[i], std::sin(angle)) <= 0.51);
            }
        }
    }
}

TEST_CASE("element loops: sums of a norm have the same bits for every instruction set") {
    const Tensor row = test::random_tensor(1, {77});
    double expected_sum = 0.0, expected_squares = 0.0;
    available_element_loops().back().f32.norm_sums(row.view().as<float>(), 77, &expected_sum, expected_squares);
    for (const ElementLoops& loops : available_element_loops()) {
        double sum = 0.0, squares = 0.0;
        loops.f32.norm_sums(row.view().as<float>(), 77, &sum, squares);
        CHECK(sum == expected_sum);
        CHECK(squares == expected_squares);
    }
}

}  // namespace
}  // namespace shardplan::kernels
