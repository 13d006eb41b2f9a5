#include "comm/ordered_reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tensors.h"

using namespace shardplan;
using comm::Reduction;
using tensor::DType;

namespace {

template <typename T>
std::vector<T> reduce(Reduction reduction, DType dtype, const std::vector<T>& blocks, std::int64_t n) {
    std::vector<T> out(blocks.size() / static_cast<std::size_t>(n));
    comm::ordered_reduce(reduction, dtype, reinterpret_cast<const std::byte*>(blocks.data()), n, std::ssize(out),
                         reinterpret_cast<std::byte*>(out.data()));
    return out;
}

}  // namespace

TEST_CASE("sums are taken from the first block to the last") {
    // (1e8 + -1e8) + 1 = 1, but 1e8 + (-1e8 + 1) = 0 in f32.
    CHECK(reduce<float>(Reduction::sum, DType::f32, {1e8F, -1e8F, 1.0F}, 3) == std::vector<float>{1.0F});
    CHECK(reduce<float>(Reduction::sum, DType::f32, {1.0F, 1e8F, -1e8F}, 3) == std::vector<float>{0.0F});
    CHECK(reduce<double>(Reduction::sum, DType::f64, {1e17, 5.0, -1e17, 7.0}, 2) == std::vector<double>{0.0, 12.0});
}

TEST_CASE("bf16 sums round once, at the end") {
    // 256 + 1 + 1 = 258 is a bf16 number; rounding after each step would stay at 256.
    const std::vector<std::uint16_t> blocks = {tensor::bf16_from_float(256.0F), tensor::bf16_from_float(1.0F),
                                               tensor::bf16_from_float(1.0F)};
    CHECK(tensor::float_from_bf16(reduce(Reduction::sum, DType::bf16, blocks, 3).front()) == 258.0F);
}

TEST_CASE("the maximum, of integers and with NaN in any place") {
    CHECK(reduce<std::int64_t>(Reduction::max, DType::i64, {-5, 3, -7, 4}, 2) == std::vector<std::int64_t>{-5, 4});
    CHECK(reduce<std::int32_t>(Reduction::max, DType::i32, {-5, -7}, 2) == std::vector<std::int32_t>{-5});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto result = reduce<float>(Reduction::max, DType::f32, {nan, 1.0F, 2.0F, 1.0F, nan, -3.0F}, 2);
    CHECK(std::isnan(result[0]));
    CHECK(std::isnan(result[1]));
    CHECK(result[2] == 2.0F);
}

TEST_CASE("more elements than fit a tile") {
    for (const std::int64_t count : {0, 1, 1023, 1024, 1025, 5000}) {
        CAPTURE(count);
        std::vector<float> blocks;
        std::vector<float> expected;
        for (std::int64_t b = 0; b < 3; ++b) {
            for (std::int64_t i = 0; i < count; ++i) {
                blocks.push_back(static_cast<float>(i * (b + 1)));
            }
        }
        for (std::int64_t i = 0; i < count; ++i) {
            expected.push_back(static_cast<float>(6 * i));
        }
        CHECK(reduce(Reduction::sum, DType::f32, blocks, 3) == expected);
    }
}

TEST_CASE("every instruction set gives the bits of the definition, in place as well") {
    test::Random random(3);
    for (const comm::ReduceKernels& kernels : comm::available_reduce_kernels()) {
        CAPTURE(kernels.name);
        for (const std::int64_t count : {1, 7, 16, 31, 64, 129, 1000}) {
            CAPTURE(count);
            std::vector<std::vector<std::uint16_t>> sources(3);
            for (auto& source : sources) {
                for (std::int64_t i = 0; i < count; ++i) {  // any bits: infinities, NaN and denormals among them
                    source.push_back(static_cast<std::uint16_t>(random.below(65536)));
                }
            }
            std::vector<std::uint16_t> sums;
            std::vector<std::uint16_t> largest;
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
                float sum = tensor::float_from_bf16(sources[0][i]);
                float most = sum;
                for (std::size_t s = 1; s < 3; ++s) {
                    const float next = tensor::float_from_bf16(sources[s][i]);
                    sum += next;
                    most = next > most || next != next ? next : most;
                }
                sums.push_back(tensor::bf16_from_float(sum));
                largest.push_back(tensor::bf16_from_float(most));
            }
            std::vector<const std::byte*> starts;
            for (const auto& source : sources) {
                starts.push_back(reinterpret_cast<const std::byte*>(source.data()));
            }
            std::vector<std::uint16_t> out(sums.size());
            kernels.find(Reduction::max, DType::bf16)(starts, count, reinterpret_cast<std::byte*>(out.data()));
            CHECK(out == largest);
            auto* own = reinterpret_cast<std::byte*>(sources[1].data());
            kernels.find(Reduction::sum, DType::bf16)(starts, count, own);
            const auto same = [](std::uint16_t a, std::uint16_t b) {  // which NaN comes of two is not said
                const auto nan = [](std::uint16_t x) { return (x & 0x7fffU) > 0x7f80U; };
                return a == b || (nan(a) && nan(b));
            };
            CHECK(std::equal(sums.begin(), sums.end(), sources[1].begin(), same));
        }
    }
}

TEST_CASE("types that cannot be reduced are refused") {
    CHECK_FALSE(comm::can_reduce(Reduction::sum, DType::i64));
    CHECK_FALSE(comm::can_reduce(Reduction::max, DType::u8));
    CHECK_THROWS_WITH_AS(reduce<std::int64_t>(Reduction::sum, DType::i64, {1, 2}, 2),
                         "no sum of i64 elements between ranks", std::runtime_error);
}
