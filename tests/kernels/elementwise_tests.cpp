#include <doctest/doctest.h>

#include <array>
#include <stdexcept>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("activation names of Hugging Face") {
    CHECK(parse_activation("silu") == Activation::silu);
    CHECK(parse_activation("swish") == Activation::silu);
    CHECK(parse_activation("gelu") == Activation::gelu);
    CHECK(parse_activation("gelu_new") == Activation::gelu_tanh);
    CHECK(parse_activation("gelu_pytorch_tanh") == Activation::gelu_tanh);
    CHECK(parse_activation("gelu_fast") == Activation::gelu_tanh);
    CHECK_FALSE(parse_activation("silly").has_value());
    for (int i = 0; i <= static_cast<int>(Activation::relu2); ++i) {
        CHECK(parse_activation(to_string(Activation{static_cast<std::uint8_t>(i)})) == static_cast<Activation>(i));
    }
}

TEST_CASE("activations at -2, 0, 1, 30 and -100, from tables") {
    struct Row {
        Activation activation;
        std::vector<float> values;
    };
    const Row rows[] = {{Activation::silu, {-0.238405844F, 0, 0.731058579F, 30, 0}},
                        {Activation::gelu, {-0.0455002639F, 0, 0.841344746F, 30, 0}},
                        {Activation::gelu_tanh, {-0.0454023059F, 0, 0.841191991F, 30, 0}},
                        {Activation::quick_gelu, {-0.0643413769F, 0, 0.845795753F, 30, 0}},
                        {Activation::relu, {0, 0, 1, 30, 0}},
                        {Activation::relu2, {0, 0, 1, 900, 0}}};
    const Tensor x({5}, {-2, 0, 1, 30, -100});
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const auto& [activation, values] : rows) {
            CAPTURE(to_string(activation));
            Tensor y({5});
            kernels->activate(x, activation, y);
            CHECK(test::difference(y, Tensor({5}, values), 2e-6) == "");
            kernels->glu(x, Tensor({5}, {2, 2, 2, 2, 2}), activation, y);
            kernels->scale(y, 0.5F, y);
            CHECK(test::difference(y, Tensor({5}, values), 2e-6) == "");
        }
    }
}

TEST_CASE("elementwise kernels, over several chunks and for mixed dtypes") {
    const auto kernels = make_kernels(KernelSet::reference);
    for (const DType left : {DType::f32, DType::bf16}) {
        for (const DType right : {DType::f32, DType::bf16}) {
            const Tensor a = test::random_tensor(1, {3, 2500}, left);
            const Tensor b = test::random_tensor(2, {3, 2500}, right);
            const Tensor bias = test::random_tensor(3, {2500}, right);
            Tensor sum(a.shape(), left);
            Tensor biased(a.shape(), left);
            kernels->add(a, b, sum);
            kernels->add_bias(a, bias, biased);
            for (std::int64_t i = 0; i < a.count(); i += 97) {
                CHECK(std::abs(sum[i] - (a[i] + b[i])) <= test::tolerance(left) * (1 + std::abs(sum[i])));
                CHECK(std::abs(biased[i] - (a[i] + bias[i % 2500])) <=
                      test::tolerance(left) * (1 + std::abs(biased[i])));
            }
        }
    }
}

TEST_CASE("scale, softcap and clip") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor x({3}, {-4, 0.5, 8});
    Tensor y({3});
    kernels->scale(x, -2.0F, y);
    CHECK(y == Tensor({3}, {8, -1, -16}));
    kernels->clip(x, 3.0F, y);
    CHECK(y == Tensor({3}, {-3, 0.5, 3}));
    kernels->softcap(x, 4.0F, y);  // 4 tanh(x / 4)
    CHECK(test::difference(y, Tensor({3}, {-3.04637662F, 0.497412007F, 3.85611032F}), 1e-6) == "");
    CHECK_THROWS_WITH_AS(kernels->softcap(x, 0.0F, y), "softcap: cap is 0, must be positive", std::invalid_argument);
}

TEST_CASE("convert: every f16, and rounding to bf16") {
    const auto kernels = make_kernels(KernelSet::reference);
    Tensor half({65536}, DType::f16);
    for (int i = 0; i < 65536; ++i) {
        half.view().as<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    }
    Tensor wide({65536});
    kernels->convert(half, wide);
    for (int i = 0; i < 65536; ++i) {
        const float expected = tensor::float_from_f16(static_cast<std::uint16_t>(i));
        const float value = wide.view().as<float>()[i];
        if (!(value == expected || (std::isnan(value) && std::isnan(expected)))) {
            FAIL_CHECK(i << " became " << value << ", not " << expected);
        }
    }
    Tensor narrow({2}, DType::bf16);
    kernels->convert(Tensor({2}, {1.00390625F, 1.01171875F}), narrow);  // both in the middle: to even
    CHECK(narrow[0] == 1.0);
    CHECK(narrow[1] == 1.015625);
}

TEST_CASE("embedding: rows of other ranks give zeros, so that the sum over the shards is the whole") {
    const auto kernels = make_kernels(KernelSet::reference);
    Tensor ids({1, 4}, DType::i32);
    for (const std::int64_t i : {0, 1, 2, 3}) {
        ids.set(i, std::array{5.0, 0.0, 2.0, 3.0}[static_cast<std::size_t>(i)]);
    }
    const Tensor table({2, 2}, {1, 2, 3, 4});  // rows 2 and 3
    Tensor y({1, 4, 2});
    kernels->embedding(ids, table, 2, 10.0F, y);
    CHECK(y == Tensor({1, 4, 2}, {0, 0, 0, 0, 10, 20, 30, 40}));
}

TEST_CASE("write_cache writes the tokens inside of the local positions only") {
    const auto kernels = make_kernels(KernelSet::reference);
    const Tensor k({2, 3, 1, 1}, {1, 2, 3, 4, 5, 6});
    Tensor cache({2, 4, 1, 1});
    kernels->write_cache(k, std::array<std::int64_t, 2>{9, 12}, 10, cache);  // positions 10 .. 13 are here
    CHECK(cache == Tensor({2, 4, 1, 1}, {2, 3, 0, 0, 0, 0, 4, 5}));
    kernels->write_cache(k, std::array<std::int64_t, 2>{0, 14}, 10, cache);
    CHECK(cache == Tensor({2, 4, 1, 1}, {2, 3, 0, 0, 0, 0, 4, 5}));
}

TEST_CASE("elementwise kernels accept empty tensors and refuse other shapes") {
    const auto kernels = make_kernels(KernelSet::onednn);
    Tensor empty({0, 4});
    kernels->activate(empty, Activation::silu, empty);
    kernels->add(empty, empty, empty);
    kernels->add_bias(empty, Tensor({4}), empty);
    Tensor y({2, 3});
    CHECK_THROWS_WITH_AS(kernels->add(y, Tensor({3, 2}), y), "add: b has shape [3, 2], must be [2, 3]",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(kernels->glu(y, Tensor({2, 3}, DType::i32), Activation::relu, y),
                         "glu: b is i32, must be f32 or bf16", std::invalid_argument);
}

}  // namespace
}  // namespace shardplan::kernels
