#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <stdexcept>

#include "kernels/random.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("random numbers never change: plans and reports are compared between machines") {
    constexpr float factor = 1.0F / 37837.2272F;
    CHECK(normal_at(0, 0, 0) == -28467.0F * factor);
    CHECK(normal_at(1, 0xabcdef, 123456789012) == 20086.0F * factor);
}

TEST_CASE("random numbers have mean 0, variance 1 and no correlation with the neighbour") {
    constexpr std::int64_t count = 1 << 18;
    double sum = 0.0;
    double squares = 0.0;
    double neighbours = 0.0;
    double keys = 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = normal_at(5, 6, i);
        sum += value;
        squares += value * value;
        neighbours += value * normal_at(5, 6, i + 1);
        keys += value * normal_at(5, 7, i);
    }
    // Five standard deviations of the mean of `count` numbers is 0.01.
    CHECK(std::abs(sum / count) < 0.01);
    CHECK(std::abs(squares / count - 1.0) < 0.015);
    CHECK(std::abs(neighbours / count) < 0.01);
    CHECK(std::abs(keys / count) < 0.01);
}

TEST_CASE("any block holds the values of the whole tensor") {
    CHECK(rc::check([] {
        const auto rank = *rc::gen::inRange<std::size_t>(1, 5);
        tensor::Shape shape;
        std::vector<base::Interval> block;
        for (std::size_t i = 0; i < rank; ++i) {
            const auto size = *rc::gen::inRange<std::int64_t>(1, 12);
            const auto begin = *rc::gen::inRange<std::int64_t>(0, size);
            shape.push_back(size);
            block.push_back({begin, *rc::gen::inRange<std::int64_t>(begin, size + 1)});
        }
        const DType dtype = *rc::gen::element(DType::f32, DType::bf16);
        Tensor expected = test::random_tensor(3, shape, dtype);
        tensor::Shape local;
        for (std::size_t i = 0; i < rank; ++i) {
            expected = test::slice(expected, i, block[i]);
            local.push_back(block[i].size());
        }
        Tensor y(local, dtype);
        fill_block(7, 3, 1.0F, 0.0F, shape, block, y);
        RC_ASSERT(y == expected);
    }));
}

TEST_CASE("fill_block: global row-major index, scale and offset") {
    Tensor y({2, 2});
    const std::vector<base::Interval> block = {{1, 3}, {2, 4}};
    fill_block(9, 8, 0.5F, 1.0F, {3, 5}, block, y);
    CHECK(y.at({0, 1}) == static_cast<double>(1.0F + 0.5F * normal_at(9, 8, 8)));
    CHECK(y.at({1, 0}) == static_cast<double>(1.0F + 0.5F * normal_at(9, 8, 12)));
}

TEST_CASE("fill_block refuses blocks outside of the tensor") {
    Tensor y({2, 2});
    const std::vector<base::Interval> block = {{1, 3}, {4, 6}};
    CHECK_THROWS_WITH_AS(fill_block(0, 0, 1.0F, 0.0F, {3, 5}, block, y),
                         "fill_block: block [4, 6) leaves dimension 1 of the tensor [3, 5]", std::invalid_argument);
}

}  // namespace
}  // namespace shardplan::kernels
