#include <doctest/doctest.h>

#include <array>

#include "kernels/kernels.h"
#include "kernels/onednn/packing.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/strip_product.h"
#include "kernels/tensors.h"

// Products with packed weights, for every instruction set this machine has.
namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// w [n, k] as oneDNN's "BA16a64b" (f32) or "BA16a64b2a" (bf16).
Tensor in_blocks(const Tensor& w, DType dtype) {
    const std::int64_t n = w.shape()[0];
    const std::int64_t k = w.shape()[1];
    const std::int64_t depth = round_up(k, block_depth(dtype));
    const std::int64_t pair = dtype == DType::bf16 ? 2 : 1;
    Tensor blocks({round_up(n, 64), depth}, dtype);
    for (std::int64_t i = 0; i < n * k; ++i) {
        const std::int64_t row = i % k;
        const std::int64_t col = i / k;
        blocks.set(col / 64 * 64 * depth + (row / pair * 64 + col % 64) * pair + row % pair, w[i]);
    }
    return blocks;
}

Tensor expected_product(const Tensor& x, const Tensor& w) {
    const std::int64_t k = w.shape()[1];
    const std::int64_t n = w.shape()[0];
    Tensor y({x.shape()[0], n});
    for (std::int64_t i = 0; i < y.count(); ++i) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            sum += x[i / n * k + j] * w[i % n * k + j];
        }
        y.set(i, sum);
    }
    return y;
}

/// w [n, k] with each row rounded to multiples of its largest magnitude / 127.
Tensor quantised(const Tensor& w) {
    const std::int64_t k = w.shape()[1];
    Tensor result(w.shape());
    for (std::int64_t row = 0; row < w.shape()[0]; ++row) {
        double most = 0.0;
        for (std::int64_t i = 0; i < k; ++i) {
            most = std::max(most, std::abs(w[row * k + i]));
        }
        // In float, as there: bf16 has few enough bits that halves occur, and which way they go is the rounding's.
        const float inverse = most > 0.0 ? 127.0F / static_cast<float>(most) : 0.0F;
        for (std::int64_t i = row * k; i < row * k + k; ++i) {
            result.set(i, static_cast<double>(std::nearbyint(static_cast<float>(w[i]) * inverse)) * most / 127.0);
        }
    }
    return result;
}

TEST_CASE("few rows times the blocks of oneDNN: all sizes around the blocks; a row alone has the same bits") {
    for (const TileFunctions& functions : available_tile_functions()) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const auto& [n, k] : {std::pair{1, 1}, {64, 16}, {65, 33}, {130, 200}, {63, 31}}) {
                CAPTURE(std::string(functions.name));
                CAPTURE(n);
                CAPTURE(k);
                const Tensor w = test::random_tensor(2, {n, k}, dtype);
                const Tensor blocks = in_blocks(w, dtype);
                const Tensor all = test::random_tensor(1, {small_rows, k}, dtype);
                Tensor whole({small_rows, n});
                multiply_few_blocks(all, blocks.view().data, {small_rows, n, k}, whole, functions);
                CHECK(test::difference(whole, expected_product(all, w), 1e-5) == "");
                for (std::int64_t m = 1; m < small_rows; ++m) {
                    Tensor y({m, n});
                    multiply_few_blocks(test::slice(all, 0, {0, m}), blocks.view().data, {m, n, k}, y, functions);
                    CHECK(y == test::slice(whole, 0, {0, m}));
                }
            }
        }
    }
}

TEST_CASE("strips of every instruction set: sums and unpacking") {
    constexpr std::int64_t k = 70;
    const Tensor w = test::random_tensor(2, {block_columns, k}, DType::bf16);
    const HugeBuffer packed = pack_strips(w, WeightOrder::out_in, {block_columns, k});
    const QuantisedStrips small = pack_quantised(w, WeightOrder::out_in, {block_columns, k});
    const Tensor x = test::random_tensor(1, {9, k});
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(packed.data());
    const auto* bytes = reinterpret_cast<const std::int8_t*>(small.data.data());
    for (const TileFunctions& functions : available_tile_functions()) {
        CAPTURE(std::string(functions.name));
        for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 9}) {
            const Tensor rows = test::slice(x, 0, {0, m});
            Tensor y({m, block_columns});
            Tensor z({m, block_columns});
            const Matrix<const float> factors{rows.view().as<float>(), k};
            functions.strips_bf16(factors, {pairs, k / 2 * strip_columns}, {y.view().as<float>(), block_columns},
                                  {m, block_columns, k});
            functions.strips_s8(factors, {bytes, k * strip_columns}, {z.view().as<float>(), block_columns},
                                {m, block_columns, k});
            for (std::int64_t i = 0; i < z.count(); ++i) {
                z.set(i, z[i] * static_cast<double>(small.scales[static_cast<std::size_t>(i % block_columns)]));
            }
            CHECK(test::difference(y, expected_product(rows, w), 1e-5) == "");
            CHECK(test::difference(z, expected_product(rows, quantised(w)), 1e-5) == "");
        }
        Tensor values({k, strip_columns});
        functions.unpack_bf16(pairs, k / 2, values.view().as<float>());
        for (std::int64_t i = 0; i < values.count(); ++i) {
            REQUIRE(values[i] == w.at({i % strip_columns, i / strip_columns}));
        }
        functions.unpack_s8(bytes, k, values.view().as<float>());
        for (std::int64_t i = 0; i < values.count(); ++i) {
            const auto scale = static_cast<double>(small.scales[static_cast<std::size_t>(i % strip_columns)]);
            REQUIRE(std::abs(values[i] * scale - w.at({i % strip_columns, i / strip_columns})) <= scale * 0.5001);
        }
    }
}

TEST_CASE("products with strips, of bf16 and int8: any size, both orders; many rows have the bits of few") {
    for (const auto& [n, k] : {std::pair{1, 1}, {64, 16}, {65, 33}, {130, 301}, {63, 600}, {5, 0}}) {
        CAPTURE(n);
        CAPTURE(k);
        const Tensor w = test::random_tensor(2, {n, k}, DType::bf16);
        Tensor turned({k, n}, DType::bf16);
        for (std::int64_t i = 0; i < n * k; ++i) {
            turned.set(i % k * n + i / k, w[i]);
        }
        const WeightSize size{n, k};
        const HugeBuffer packed = pack_strips(w, WeightOrder::out_in, size);
        const QuantisedStrips small = pack_quantised(turned, WeightOrder::in_out, size);
        const StripWeight weights[] = {{packed.data(), DType::bf16}, {small.data.data(), DType::i8, small.scales}};
        CHECK(packed.bytes() == strip_bytes(size, DType::bf16));
        CHECK(std::equal(packed.data(), packed.data() + packed.bytes(),
                         pack_strips(turned, WeightOrder::in_out, size).data()));
        const Tensor x = test::random_tensor(1, {101, k}, DType::bf16);
        const Tensor rounded = quantised(w);
        for (const StripWeight& weight : weights) {
            Tensor whole({101, n});
            multiply_strips(x, weight, {101, n, k}, whole);
            const Tensor& exact = weight.dtype == DType::i8 ? rounded : w;
            CHECK(test::difference(whole, expected_product(x, exact), 2e-5) == "");
            Tensor few({5, n});
            multiply_strips(test::slice(x, 0, {96, 101}), weight, {5, n, k}, few);
            CHECK(few == test::slice(whole, 0, {96, 101}));
        }
    }
}

TEST_CASE("a layout is read as blocks only where it is exactly that") {
    using namespace onednn;
    const MatrixDesc f32{100, 70, DType::f32, Layout::library};
    const MatrixDesc bf16{100, 70, DType::bf16, Layout::library};
    const std::array<std::int64_t, 3> sizes = {16, 64, 2}, dimensions = {0, 1, 0}, other_sizes = {16, 48, 2};
    const std::array<std::int64_t, 2> strides = {16 * 64, 112 * 64}, pair_strides = {32 * 64, 128 * 64};
    const std::array<std::int64_t, 2> padded = {112, 128}, pair_padded = {128, 128}, rows = {70, 1}, columns = {1, 100};
    const Blocking blocks{2, sizes.data(), dimensions.data(), strides.data(), padded.data()};
    const Blocking pairs{3, sizes.data(), dimensions.data(), pair_strides.data(), pair_padded.data()};
    CHECK(packing_of(blocks, f32) == Packing::blocks);
    CHECK(packing_of(pairs, bf16) == Packing::blocks);
    CHECK(packing_of(blocks, bf16) == Packing::other);
    CHECK(packing_of(pairs, f32) == Packing::other);
    Blocking changed = blocks;
    changed.sizes = other_sizes.data();
    CHECK(packing_of(changed, f32) == Packing::other);
    changed = blocks;
    changed.strides = pair_strides.data();
    CHECK(packing_of(changed, f32) == Packing::other);
    changed = blocks;
    changed.offset = 1;
    CHECK(packing_of(changed, f32) == Packing::other);
    CHECK(packing_of({0, nullptr, nullptr, rows.data(), padded.data()}, f32) == Packing::plain);
    CHECK(packing_of({0, nullptr, nullptr, columns.data(), padded.data()}, f32) == Packing::plain);
    CHECK(packing_of({0, nullptr, nullptr, strides.data(), padded.data()}, f32) == Packing::other);
}

}  // namespace
}  // namespace shardplan::kernels
