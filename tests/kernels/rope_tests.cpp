#include <doctest/doctest.h>

#include <array>
#include <stdexcept>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

constexpr std::array<float, 3> frequencies = {1.0F, 0.1F, 0.01F};

struct Variant {
    bool interleaved;
    float factor;
};

TEST_CASE("rope turns each pair by position * frequency and leaves the rest alone") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<std::int64_t, 2> start = {0, 1000};
    for (const auto& [interleaved, factor] : {Variant{false, 1.0F}, Variant{true, 1.0F}, Variant{false, 1.2F}}) {
        const RopeParams params{6, interleaved, frequencies, factor};
        const Tensor x = test::random_tensor(1, {2, 3, 2, 8});
        Tensor y(x.shape());
        kernels->rope(x, start, params, y);
        for (std::int64_t head = 0; head < 12; ++head) {  // [b, s, h] flattened
            const double position = static_cast<double>(start[head / 6 == 0 ? 0 : 1] + head % 6 / 2);
            for (std::int64_t i = 0; i < 3; ++i) {
                const std::int64_t first = head * 8 + (interleaved ? 2 * i : i);
                const std::int64_t second = interleaved ? first + 1 : first + 3;
                const double angle = position * static_cast<double>(frequencies[static_cast<std::size_t>(i)]);
                const double a = x[first];
                const double b = x[second];
                CHECK(y[first] == doctest::Approx(factor * (a * std::cos(angle) - b * std::sin(angle))).epsilon(1e-4));
                CHECK(y[second] == doctest::Approx(factor * (b * std::cos(angle) + a * std::sin(angle))).epsilon(1e-4));
            }
            CHECK(y[head * 8 + 6] == x[head * 8 + 6]);
            CHECK(y[head * 8 + 7] == x[head * 8 + 7]);
        }
    }
}

TEST_CASE("rope: the turned pair of one angle, by hand") {
    const auto kernels = make_kernels(KernelSet::reference);
    const std::array<float, 2> quarter = {1.57079632679F, 0.0F};
    Tensor x({1, 2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
    kernels->rope(x, std::array<std::int64_t, 1>{0}, {4, false, quarter, 1.0F}, x);
    CHECK(test::difference(x, Tensor({1, 2, 1, 4}, {1, 2, 3, 4, -3, 2, 1, 4}), 1e-6) == "");
}

TEST_CASE("rope of a shard of the sequence has the bits of the whole, also in place") {
    const auto kernels = make_kernels(KernelSet::reference);
    for (const DType dtype : {DType::f32, DType::bf16}) {
        const RopeParams params{6, false, frequencies, 1.0F};
        const Tensor x = test::random_tensor(1, {2, 9, 3, 6}, dtype);
        Tensor whole(x.shape(), dtype);
        kernels->rope(x, std::array<std::int64_t, 2>{4, 40}, params, whole);
        for (const base::Interval shard : {base::Interval{0, 4}, base::Interval{4, 4}, base::Interval{4, 9}}) {
            Tensor part = test::slice(x, 1, shard);
            kernels->rope(part, std::array<std::int64_t, 2>{4 + shard.begin, 40 + shard.begin}, params, part);
            CHECK(part == test::slice(whole, 1, shard));
        }
    }
}

TEST_CASE("rope refuses odd and too large rotary dimensions") {
    const auto kernels = make_kernels(KernelSet::reference);
    Tensor x({1, 1, 1, 4});
    const std::array<std::int64_t, 1> start = {0};
    CHECK_THROWS_WITH_AS(kernels->rope(x, start, {6, false, frequencies, 1.0F}, x),
                         "rope: rotary_dim 6 must be even and at most the head dimension 4", std::invalid_argument);
    CHECK_THROWS_AS(kernels->rope(x, start, {4, false, frequencies, 1.0F}, x), std::invalid_argument);
}

}  // namespace
}  // namespace shardplan::kernels
