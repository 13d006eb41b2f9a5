#include "kernels/reference/tiles.h"

#include <doctest/doctest.h>

#include "kernels/tensors.h"

// Every instruction set this machine has, not only the best one.
namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

const float* floats(const Tensor& x) {
    return x.view().as<float>();
}

TEST_CASE("tiles: dot products and weighted sums of all sizes around the vector lengths") {
    for (const TileFunctions& functions : available_tile_functions()) {
        for (const std::int64_t rows : {1, 2, 4, 7}) {
            for (const std::int64_t cols : {1, 3, 5, 33}) {
                for (const std::int64_t depth : {0, 1, 16, 37}) {
                    CAPTURE(std::string(functions.name));
                    const Tensor x = test::random_tensor(1, {rows, depth});
                    const Tensor w = test::random_tensor(2, {cols, depth});
                    const Tensor half = test::random_tensor(2, {cols, depth}, DType::bf16);
                    const Tensor v = test::random_tensor(3, {depth, cols});
                    Tensor expected({3, rows, cols});
                    for (std::int64_t i = 0; i < rows * cols * depth; ++i) {
                        const std::int64_t r = i / depth / cols;
                        const std::int64_t c = i / depth % cols;
                        const std::int64_t k = i % depth;
                        const double factors[] = {w.at({c, k}), half.at({c, k}), v.at({k, c})};
                        for (std::int64_t f = 0; f < 3; ++f) {
                            const std::int64_t place = (f * rows + r) * cols + c;
                            expected.set(place, expected[place] + x.at({r, k}) * factors[f]);
                        }
                    }
                    Tensor y({3, rows, cols});
                    float* out = y.view().as<float>();
                    const TileShape shape{rows, cols, depth};
                    functions.dot_f32({floats(x), depth}, {floats(w), depth}, {out, cols}, shape);
                    functions.dot_bf16({floats(x), depth}, {half.view().as<std::uint16_t>(), depth},
                                       {out + rows * cols, cols}, shape);
                    functions.weighted_sum({floats(x), depth}, {floats(v), cols}, {out + 2 * rows * cols, cols}, shape);
                    CHECK(test::difference(y, expected, 1e-5) == "");
                }
            }
        }
    }
}

TEST_CASE("tiles: conversions have the same bits for every instruction set") {
    const float special[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, -NAN, 3.4e38F, 1e-40F, 1.00390625F, 1.01171875F};
    std::vector<float> values(std::begin(special), std::end(special));
    const Tensor random = test::random_tensor(1, {37});
    values.insert(values.end(), floats(random), floats(random) + 37);
    const auto count = static_cast<std::int64_t>(values.size());
    for (const TileFunctions& functions : available_tile_functions()) {
        CAPTURE(std::string(functions.name));
        std::vector<std::uint16_t> half(values.size());
        functions.narrow(values.data(), count, half.data());
        std::vector<float> wide(values.size());
        functions.widen(half.data(), count, wide.data());
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(half[i] == tensor::bf16_from_float(values[i]));
            CHECK(tensor::bf16_from_float(wide[i]) == half[i]);
        }
    }
}

}  // namespace
}  // namespace shardplan::kernels
