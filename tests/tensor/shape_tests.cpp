#include "tensor/shape.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "tensor/view.h"

using namespace shardplan::tensor;
using shardplan::base::OverflowError;

TEST_CASE("element_count and byte_count") {
    struct Row {
        Shape shape;
        std::int64_t count;
    };
    const Row rows[] = {
        {{}, 1},        {{7}, 7},       {{4, 128}, 512},
        {{2, 0, 3}, 0}, {{1, 1, 1}, 1}, {{131072, 8192, 64}, 68719476736},  // more than 32 bits
    };
    for (const Row& row : rows) {
        CAPTURE(to_string(row.shape));
        CHECK(element_count(row.shape) == row.count);
        CHECK(byte_count(row.shape, DType::f32) == 4 * row.count);
        CHECK(byte_count(row.shape, DType::bf16) == 2 * row.count);
        CHECK(byte_count(row.shape, DType::u8) == row.count);
    }
}

TEST_CASE("sizes that need more than 64 bits throw") {
    constexpr std::int64_t big = std::int64_t{1} << 32;
    CHECK_THROWS_AS(element_count({big, big}), OverflowError);
    CHECK(element_count({big, big >> 2}) == std::int64_t{1} << 62);
    CHECK_THROWS_AS(byte_count({big, big >> 2}, DType::bf16), OverflowError);
    CHECK_NOTHROW(byte_count({big, big >> 2}, DType::i8));
}

TEST_CASE("shapes print as lists") {
    CHECK(to_string(Shape{}) == "[]");
    CHECK(to_string(Shape{4}) == "[4]");
    CHECK(to_string(Shape{4, 128, 1}) == "[4, 128, 1]");
}

TEST_CASE("a view reads and writes the buffer it was made of") {
    std::array<float, 6> values = {1, 2, 3, 4, 5, 6};
    View view{reinterpret_cast<std::byte*>(values.data()), DType::f32, {2, 3}};
    CHECK(view.count() == 6);
    CHECK(view.bytes() == 24);
    view.as<float>()[4] = 50;
    CHECK(values[4] == 50);
    const ConstView constant = view;
    CHECK(constant.as<float>() == values.data());
    CHECK(constant.shape == view.shape);
    CHECK(constant.bytes() == 24);
    CHECK(View{}.count() == 1);
}
