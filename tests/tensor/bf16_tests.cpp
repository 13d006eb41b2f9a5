#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/dtype.h"

using namespace shardplan::tensor;

namespace {

/// The value as a double; infinity counts as the next power of two, where rounding puts it.
double magnitude(std::uint16_t bits) {
    const float value = float_from_bf16(static_cast<std::uint16_t>(bits & 0x7fffU));
    return std::isinf(value) ? 0x1p128 : double{value};
}

/// Nearest to `value` of the two bf16 around it, the even one when both are as near.
std::uint16_t nearest_even(float value) {
    const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    const auto above = static_cast<std::uint16_t>(below + 1);
    const double from_below = std::fabs(double{value}) - magnitude(below);
    const double to_above = magnitude(above) - std::fabs(double{value});
    if (from_below == to_above) {
        return (below & 1U) == 0 ? below : above;
    }
    return from_below < to_above ? below : above;
}

}  // namespace

TEST_CASE("all 65,536 bf16 values survive the way to float and back") {
    int nans = 0;
    int wrong = 0;
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const auto value = static_cast<std::uint16_t>(bits);
        const float wide = float_from_bf16(value);
        const std::uint16_t back = bf16_from_float(wide);
        if (std::isnan(wide)) {
            ++nans;
            wrong += !std::isnan(float_from_bf16(back)) || std::signbit(float_from_bf16(back)) != std::signbit(wide);
        } else {
            wrong += back != value;
        }
    }
    CHECK(nans == 2 * 127);
    CHECK(wrong == 0);
}

TEST_CASE("bf16 rounds to nearest, ties to even") {
    struct Row {
        std::uint32_t from;
        std::uint16_t to;
    };
    const Row rows[] = {
        {0x3f800000, 0x3f80},  // 1
        {0x3f807fff, 0x3f80},  // just under half
        {0x3f808000, 0x3f80},  // half: down to even
        {0x3f808001, 0x3f81},  // just over half
        {0x3f818000, 0x3f82},  // half: up to even
        {0xbf818000, 0xbf82},  // the same below zero
        {0x3fffffff, 0x4000},  // carries into the exponent
        {0x7f7fffff, 0x7f80},  // the largest float is nearer to infinity
        {0x7f7f7fff, 0x7f7f},  // the largest that is not
        {0x00000001, 0x0000},  // the smallest float
        {0x80000001, 0x8000},  // zero keeps its sign
        {0x7f800000, 0x7f80},  // infinity
        {0xff800000, 0xff80},
    };
    for (const Row& row : rows) {
        CAPTURE(row.from);
        CHECK(bf16_from_float(std::bit_cast<float>(row.from)) == row.to);
    }
}

TEST_CASE("a NaN stays a NaN, also when its payload lies only in the lost bits") {
    for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
        CAPTURE(bits);
        const float back = float_from_bf16(bf16_from_float(std::bit_cast<float>(bits)));
        CHECK(std::isnan(back));
        CHECK(std::signbit(back) == ((bits >> 31) == 1));
    }
}

TEST_CASE("bf16 rounding agrees with distances in double") {
    CHECK(rc::check("nearest even", [] {
        auto bits = *rc::gen::arbitrary<std::uint32_t>();
        if (*rc::gen::arbitrary<bool>()) {
            bits = (bits & 0xffff0000U) | 0x8000U;  // ties are rare otherwise
        }
        const float value = std::bit_cast<float>(bits);
        RC_PRE(std::isfinite(value));
        RC_ASSERT(bf16_from_float(value) == nearest_even(value));
    }));
}
