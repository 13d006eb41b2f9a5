#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "kernels/kernels.h"
#include "kernels/reference/attention_rows.h"
#include "kernels/reference/attention_tiles.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using base::Interval;
using test::DType;
using test::Tensor;

std::vector<double> values_of(const Tensor& x) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.count(); ++i) {
        values.push_back(x[i]);
    }
    return values;
}

/// Of one sequence, the queries being the last of the keys; within `window` keys if that is not 0.
Tensor expected_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, std::int64_t window) {
    const std::int64_t sq = q.shape()[1], heads = q.shape()[2], d = q.shape()[3];
    const std::int64_t sk = k.shape()[1], kv_heads = k.shape()[2], dv = v.shape()[3];
    const std::vector<double> queries = values_of(q), keys = values_of(k), values = values_of(v);
    Tensor y({1, sq, heads, dv}, q.view().dtype);
    for (std::int64_t row = 0; row < sq * heads; ++row) {
        const std::int64_t g = row % heads / (heads / kv_heads);
        const std::int64_t position = sk - sq + row / heads;
        std::vector<double> sums(static_cast<std::size_t>(dv));
        double total = 0.0;
        for (std::int64_t j = window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0; j <= position; ++j) {
            double score = 0.0;
            for (std::int64_t i = 0; i < d; ++i) {
                score += queries[static_cast<std::size_t>(row * d + i)] *
                         keys[static_cast<std::size_t>((j * kv_heads + g) * d + i)];
            }
            const double weight = std::exp(score * scale);
            total += weight;
            for (std::int64_t i = 0; i < dv; ++i) {
                sums[static_cast<std::size_t>(i)] +=
                    weight * values[static_cast<std::size_t>((j * kv_heads + g) * dv + i)];
            }
        }
        for (std::int64_t i = 0; i < dv; ++i) {
            y.set(row * dv + i, sums[static_cast<std::size_t>(i)] / total);
        }
    }
    return y;
}

struct Size {
    std::int64_t queries, keys, group, d, dv, window;
};

TEST_CASE("attention of sizes around its blocks and panels, of all groups and widths of heads") {
    const auto kernels = make_kernels(KernelSet::reference);
    for (const Size& size :
         {Size{2, 2, 1, 64, 64, 0},      Size{5, 133, 1, 80, 80, 0},     Size{7, 127, 2, 96, 96, 0},
          Size{128, 128, 3, 64, 64, 0},  Size{129, 129, 4, 128, 128, 0}, Size{65, 257, 5, 112, 112, 0},
          Size{43, 300, 6, 72, 72, 0},   Size{131, 140, 7, 33, 20, 0},   Size{6, 256, 8, 192, 128, 0},
          Size{140, 270, 3, 64, 64, 50}, Size{130, 260, 1, 80, 96, 128}, Size{1, 1, 1, 64, 64, 0},
          Size{1, 63, 3, 80, 80, 0},     Size{1, 65, 5, 96, 96, 0},      Size{1, 129, 6, 112, 112, 0},
          Size{1, 200, 7, 192, 128, 0},  Size{1, 333, 8, 128, 128, 0},   Size{1, 700, 4, 64, 64, 0},
          Size{1, 517, 2, 128, 64, 100}, Size{1, 1000, 1, 128, 128, 0}}) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            CAPTURE(size.queries);
            CAPTURE(size.keys);
            CAPTURE(size.group);
            CAPTURE(size.d);
            const std::array<std::int64_t, 1> q_start = {size.keys - size.queries}, k_valid = {size.keys};
            AttentionParams params{.scale = 0.2F, .q_start = q_start, .k_valid = k_valid};
            params.queries_per_kv = size.group;
            params.window = size.window;
            const Tensor q = test::random_tensor(1, {1, size.queries, 2 * size.group, size.d}, dtype);
            const Tensor k = test::random_tensor(2, {1, size.keys, 2, size.d}, dtype);
            const Tensor v = test::random_tensor(3, {1, size.keys, 2, size.dv}, dtype);
            Tensor y({1, size.queries, 2 * size.group, size.dv}, dtype);
            kernels->attention(q, k, v, params, y);
            const Tensor expected = expected_attention(q, k, v, static_cast<double>(params.scale), size.window);
            CHECK(test::difference(y, expected, test::tolerance(dtype)) == "");
        }
    }
}

// Every instruction set this machine has.
TEST_CASE("the running softmax over rows of all lengths") {
    for (const AttentionFunctions& functions : available_attention_functions()) {
        CAPTURE(std::string(functions.name));
        for (std::int64_t count = 0; count <= 40; ++count) {
            const Tensor x = test::random_tensor(7, {2, 64});
            std::vector<float> scores(2 * 64);
            std::array<float, 2> max = {no_score, 0.5F}, sum = {0.0F, 2.0F}, factor = {};
            for (std::size_t i = 0; i < scores.size(); ++i) {
                scores[i] = static_cast<float>(x[static_cast<std::int64_t>(i)]) * 20.0F;
            }
            const std::vector<float> before = scores;
            const std::array<Interval, 2> seen = {Interval{3, 3 + count}, Interval{0, count}};
            functions.soften({scores.data(), 64}, seen, {max.data(), sum.data(), factor.data()});
            for (std::size_t r = 0; r < 2; ++r) {
                const auto place = [&](std::int64_t j) { return r * 64 + static_cast<std::size_t>(j); };
                float most = r == 0 ? no_score : 0.5F;
                for (std::int64_t j = seen[r].begin; j < seen[r].end; ++j) {
                    most = std::max(most, before[place(j)]);
                }
                CHECK(max[r] == most);
                const double kept = r == 1 ? std::exp(0.5 - static_cast<double>(most)) : count == 0 ? 1.0 : 0.0;
                CHECK(std::abs(static_cast<double>(factor[r]) - kept) <= 1e-6);
                double total = r == 1 ? 2.0 * kept : 0.0;
                for (std::int64_t j = seen[r].begin; j < seen[r].end; ++j) {
                    const double weight = std::exp(static_cast<double>(before[place(j)] - most));
                    CHECK(std::abs(static_cast<double>(scores[place(j)]) - weight) <= 6e-7 * weight + 1e-37);
                    total += weight;
                }
                CHECK(std::abs(static_cast<double>(sum[r]) - total) <= 6e-7 * total);
                for (std::int64_t j = 0; j < seen[r].begin; ++j) {
                    CHECK(scores[place(j)] == before[place(j)]);
                }
            }
        }
    }
}

/// Packs `rows` keys, which are values too, multiplies a panel with both and compares.
void check_panel(const AttentionFunctions& functions, DType dtype, std::int64_t rows, std::int64_t width) {
    CAPTURE(std::string(functions.name));
    CAPTURE(rows);
    CAPTURE(width);
    const std::int64_t padded = (width + functions.width - 1) / functions.width * functions.width;
    const Tensor q = test::random_tensor(1, {panel_rows, width});
    const Tensor k = test::random_tensor(2, {rows, width}, dtype);
    std::vector<float> keys(static_cast<std::size_t>(panel_keys * width));
    std::vector<float> values(static_cast<std::size_t>(rows * padded));
    if (dtype == DType::f32) {
        functions.pack_keys_f32({k.view().as<float>(), width}, {rows, width, 0}, keys.data());
        functions.pack_values_f32({k.view().as<float>(), width}, {rows, width, 0}, values.data());
    } else {
        functions.pack_keys_bf16({k.view().as<std::uint16_t>(), width}, {rows, width, 0}, keys.data());
        functions.pack_values_bf16({k.view().as<std::uint16_t>(), width}, {rows, width, 0}, values.data());
    }
    std::vector<float> scores(panel_rows * score_stride);
    functions.scores({q.view().as<float>(), width}, keys.data(), scores.data(), {panel_rows, rows, width});
    Tensor found({panel_rows, rows}), expected({panel_rows, rows});
    for (std::int64_t i = 0; i < panel_rows * rows; ++i) {
        found.set(i, scores[static_cast<std::size_t>(i / rows * score_stride + i % rows)]);
        for (std::int64_t c = 0; c < width; ++c) {
            expected.set(i, expected[i] + q.at({i / rows, c}) * k.at({i % rows, c}));
        }
    }
    CHECK(test::difference(found, expected, 5e-5) == "");
    std::vector<float> out(static_cast<std::size_t>(panel_rows * padded), 1.0F);
    const std::array<float, panel_rows> factor = {0.0F, 1.0F, 0.5F, 2.0F, 1.0F, 0.0F};
    functions.values(scores.data(), {values.data(), rows * functions.width}, {out.data(), padded},
                     {panel_rows, padded, rows}, factor.data());
    Tensor sums({panel_rows, width}), wanted({panel_rows, width});
    for (std::int64_t i = 0; i < panel_rows * width; ++i) {
        sums.set(i, out[static_cast<std::size_t>(i / width * padded + i % width)]);
        double sum = factor[static_cast<std::size_t>(i / width)];
        for (std::int64_t j = 0; j < rows; ++j) {
            sum += found.at({i / width, j}) * k.at({j, i % width});
        }
        wanted.set(i, sum);
    }
    CHECK(test::difference(sums, wanted, 5e-4) == "");
}

TEST_CASE("panels against packed keys and values of all sizes around the tiles") {
    for (const AttentionFunctions& functions : available_attention_functions()) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const std::int64_t rows : {1, 7, 8, 9, 16, 17, 31, 33, 128}) {
                for (const std::int64_t width : {1, 15, 16, 17, 33, 64, 80, 112}) {
                    check_panel(functions, dtype, rows, width);
                }
            }
        }
    }
}

}  // namespace
}  // namespace shardplan::kernels
