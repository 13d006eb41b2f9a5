#include "exec/compare.h"

#include <doctest/doctest.h>

#include <vector>

#include <limits>

using namespace shardplan;
using exec::FloatTensor;

namespace {

const exec::Tolerance loose{0.1, 0.0, 1.0};

FloatTensor ones() {
    return {{1, 2, 3}, {1.0F, -1.0F, 1.0F, -1.0F, 1.0F, -1.0F}};
}

}  // namespace

TEST_CASE("equal tensors pass with no error") {
    const exec::Comparison result = exec::compare(ones(), ones(), exec::tolerance_of(tensor::DType::f32, 2));
    CHECK(result.passed);
    CHECK(result.compared == 6);
    CHECK(result.max_absolute == 0.0);
    CHECK(result.relative_rms == 0.0);
    CHECK(result.reference_rms == doctest::Approx(1.0));
}

TEST_CASE("one wrong element is found and named") {
    FloatTensor wrong = ones();
    wrong.values[4] = 1.5F;
    const exec::Comparison result = exec::compare(wrong, ones(), loose);
    CHECK_FALSE(result.passed);
    CHECK(result.failed == 1);
    CHECK(result.worst == tensor::Shape{0, 1, 1});
    CHECK(result.worst_value == 1.5F);
    CHECK(result.worst_reference == 1.0F);
    CHECK(result.max_absolute == doctest::Approx(0.5));
    CHECK(result.max_relative == doctest::Approx(0.5));
}

TEST_CASE("many small errors fail by their sum alone") {
    FloatTensor wrong = ones();
    for (float& value : wrong.values) {
        value += 0.05F;
    }
    CHECK(exec::compare(wrong, ones(), {0.1, 0.0, 0.06}).passed);
    CHECK_FALSE(exec::compare(wrong, ones(), {0.1, 0.0, 0.04}).passed);
}

TEST_CASE("NaN and infinities never pass, not even on both sides") {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        FloatTensor a = ones();
        FloatTensor b = ones();
        a.values[2] = bad;
        CHECK_FALSE(exec::compare(a, b, loose).passed);
        CHECK_FALSE(exec::compare(b, a, loose).passed);
        b.values[2] = bad;
        const exec::Comparison result = exec::compare(a, b, loose);
        CHECK_FALSE(result.passed);
        CHECK(result.not_finite == 1);
        CHECK(result.worst == tensor::Shape{0, 0, 2});
    }
}

TEST_CASE("a model that bf16 moves may be moved by half as much again, up to a tenth") {
    const exec::Tolerance stated = exec::tolerance_of(tensor::DType::bf16, 2);
    const auto measured = [&](double rms, double worst) {
        exec::Comparison own;
        own.relative_rms = rms;
        own.max_absolute = worst;
        own.reference_rms = 2.0;
        return exec::measured_tolerance(stated, own);
    };
    CHECK(measured(0.0, 0.0).rms == stated.rms);
    CHECK(measured(0.0, 0.0).absolute == stated.absolute);
    CHECK(measured(stated.rms / 2, 0.0).rms == stated.rms);
    CHECK(measured(0.02, 0.1).rms == doctest::Approx(0.03));
    CHECK(measured(0.02, 0.1).absolute == doctest::Approx(0.18));
    CHECK(measured(0.02, 0.3).absolute == doctest::Approx(0.3));
    CHECK(measured(0.02, 0.3).relative == stated.relative);
    CHECK(measured(0.5, 9.0).rms == doctest::Approx(0.1));
    CHECK(measured(0.5, 9.0).absolute == doctest::Approx(0.6));
}

TEST_CASE("nothing compared is nothing proved; shapes must agree") {
    CHECK_FALSE(exec::compare({{0}, {}}, {{0}, {}}, loose).passed);
    FloatTensor other = ones();
    other.shape = {1, 3, 2};
    CHECK_THROWS_AS(exec::compare(ones(), other, loose), std::invalid_argument);
}

TEST_CASE("tokens are cut out of and put into [b, s, v]") {
    const FloatTensor x{{2, 3, 1}, {1, 2, 3, 4, 5, 6}};
    CHECK(exec::tokens_of(x, std::vector<std::int64_t>{1, 0}, 2).values == std::vector<float>{2, 3, 4, 5});
    FloatTensor whole{{2, 3, 1}, std::vector<float>(6)};
    exec::put_tokens({{2, 2, 1}, {2, 3, 5, 6}}, 1, whole);
    CHECK(whole.values == std::vector<float>{0, 2, 3, 0, 5, 6});
}
