#include "kernels/reference/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/strip_product.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

/// Holds [N, K], whatever the order of the source.
class ReferenceWeight final : public Weight {
public:
    ReferenceWeight(WeightSize size, DType dtype, HugeBuffer data)
        : Weight(size.inputs, size.outputs, dtype), data_(std::move(data)) {}
    std::int64_t packed_bytes() const override { return view().bytes(); }
    ConstView view() const { return {data_.data(), dtype(), {outputs(), inputs()}}; }

private:
    HugeBuffer data_;
};

/// to[n, k] = from[k, n], in blocks that fit into the first cache.
template <typename T>
void transpose(const T* from, T* to, WeightSize size) {
    constexpr std::int64_t block = 32;
#pragma omp parallel for schedule(static) if (worth_threads(size.outputs * size.inputs))
    for (std::int64_t n0 = 0; n0 < size.outputs; n0 += block) {
        const std::int64_t n_end = std::min(size.outputs, n0 + block);
        for (std::int64_t k0 = 0; k0 < size.inputs; k0 += block) {
            const std::int64_t k_end = std::min(size.inputs, k0 + block);
            for (std::int64_t n = n0; n < n_end; ++n) {
                for (std::int64_t k = k0; k < k_end; ++k) {
                    to[n * size.inputs + k] = from[k * size.outputs + n];
                }
            }
        }
    }
}

}  // namespace

HugeBuffer natural_copy(const ConstView& w, WeightOrder order, WeightSize size) {
    HugeBuffer data(w.bytes());
    if (order == WeightOrder::out_in) {
        std::copy_n(w.data, w.bytes(), data.data());
    } else if (w.dtype == DType::f32) {
        transpose(w.as<float>(), reinterpret_cast<float*>(data.data()), size);
    } else {
        transpose(w.as<std::uint16_t>(), reinterpret_cast<std::uint16_t*>(data.data()), size);
    }
    return data;
}

namespace {

// A tile of w (48 x 1024 floats) stays in the second cache while the rows of x pass by, 4 at a time from the first.
constexpr std::int64_t tile_rows = 64;
constexpr std::int64_t tile_cols = 48;

template <typename T>
void multiply_tile(const float* x, const T* w, const MatmulShape& shape, std::int64_t m0, std::int64_t n0,
                   const View& y) {
    float sums[tile_rows * tile_cols] = {};
    const std::int64_t rows = std::min(tile_rows, shape.m - m0);
    const std::int64_t cols = std::min(tile_cols, shape.n - n0);
    for (std::int64_t k0 = 0; k0 < shape.k; k0 += tile_depth) {
        const std::int64_t depth = std::min(tile_depth, shape.k - k0);
        dot_tile({x + m0 * shape.k + k0, shape.k}, Matrix<const T>{w + n0 * shape.k + k0, shape.k}, {sums, tile_cols},
                 {rows, cols, depth});
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        store_floats(sums + i * tile_cols, cols, y, (m0 + i) * shape.n + n0);
    }
}

template <typename T>
void multiply(const float* x, const T* w, const MatmulShape& shape, const View& y) {
    if (shape.m == 0 || shape.n == 0) {
        return;
    }
#pragma omp parallel for collapse(2) schedule(static) if (worth_threads(shape.m * shape.n * shape.k))
    for (std::int64_t n0 = 0; n0 < shape.n; n0 += tile_cols) {
        for (std::int64_t m0 = 0; m0 < shape.m; m0 += tile_rows) {
            multiply_tile(x, w, shape, m0, n0, y);
        }
    }
}

void multiply_natural(const ConstView& x, const ConstView& w, const MatmulShape& shape, const View& y) {
    if (shape.m <= small_rows) {
        multiply_few(x, w, shape, y);
        return;
    }
    std::vector<float> room;
    const float* rows = as_floats(x, room);
    if (w.dtype == DType::f32) {
        multiply(rows, w.as<float>(), shape, y);
    } else {
        multiply(rows, w.as<std::uint16_t>(), shape, y);
    }
}

}  // namespace

WeightSize check_weight(std::string_view kernel, const ConstView& w, WeightOrder order) {
    check_rank(kernel, "w", w.shape, 2);
    check_float(kernel, "w", w.dtype);
    return order == WeightOrder::out_in ? WeightSize{w.shape[0], w.shape[1]} : WeightSize{w.shape[1], w.shape[0]};
}

MatmulShape check_matmul(const ConstView& x, std::int64_t n, std::int64_t k, DType dtype, const View& y) {
    if (x.shape.empty() || x.shape.back() != k) {
        reject("matmul",
               fmt::format("x {} does not end with the {} inputs of the weight", tensor::to_string(x.shape), k));
    }
    tensor::Shape wanted = x.shape;
    wanted.back() = n;
    check_shape("matmul", "y", y.shape, wanted);
    check_dtype("matmul", "x", x.dtype, dtype);
    if (y.dtype != DType::f32) {
        check_dtype("matmul", "y", y.dtype, dtype);
    }
    return {leading_count(x.shape), n, k};
}

void check_parts(std::span<const Weight* const> ws, std::span<const View> ys) {
    check_length("matmul_parts", "ys", ys.size(), std::ssize(ws));
}

std::unique_ptr<Weight> ReferenceKernels::prepare(ConstView w, WeightOrder order, WeightFormat format) const {
    const WeightSize size = check_weight("prepare", w, order);
    if (format == WeightFormat::int8) {
        return std::make_unique<QuantisedWeight>(w, order, size);
    }
    return std::make_unique<ReferenceWeight>(size, w.dtype, natural_copy(w, order, size));
}

namespace {

const ReferenceWeight& own_weight(const Weight& w) {
    const auto* weight = dynamic_cast<const ReferenceWeight*>(&w);
    if (weight == nullptr) {
        reject("matmul", "the weight was prepared by another set of kernels");
    }
    return *weight;
}

}  // namespace

void ReferenceKernels::matmul(ConstView x, const Weight& w, View y) const {
    const Weight* weight = &w;
    ReferenceKernels::matmul_parts(x, {&weight, 1}, {&y, 1});
}

void ReferenceKernels::matmul_parts(ConstView x, std::span<const Weight* const> ws, std::span<const View> ys) const {
    check_parts(ws, ys);
    std::vector<ProductPart> few;
    std::vector<StripPart> strips;
    MatmulShape shape;
    for (std::size_t i = 0; i < ws.size(); ++i) {
        if (add_quantised(x, *ws[i], ys[i], shape, strips)) {
            continue;
        }
        shape = check_matmul(x, ws[i]->outputs(), ws[i]->inputs(), ws[i]->dtype(), ys[i]);
        const ConstView w = own_weight(*ws[i]).view();
        if (shape.m <= small_rows) {
            few.push_back({w.data, shape.n, ys[i]});
        } else {
            multiply_natural(x, w, shape, ys[i]);
        }
    }
    multiply_few(x, shape, few);
    multiply_strips(x, shape, strips);
}

void ReferenceKernels::matmul_plain(ConstView x, ConstView w, WeightOrder order, View y) const {
    const WeightSize size = check_weight("matmul", w, order);
    const MatmulShape shape = check_matmul(x, size.outputs, size.inputs, w.dtype, y);
    if (order == WeightOrder::out_in) {
        multiply_natural(x, w, shape, y);
        return;
    }
    const HugeBuffer natural = natural_copy(w, order, size);
    multiply_natural(x, {natural.data(), w.dtype, {size.outputs, size.inputs}}, shape, y);
}

namespace {

/// One tile of one group's product.
struct GroupTile {
    std::size_t group = 0;
    std::int64_t m0 = 0;  ///< among the group's rows
    std::int64_t n0 = 0;
};

/// All tiles of all groups share one parallel loop, so that small groups keep every thread busy.
template <typename T>
void multiply_groups(const float* x, const std::vector<const T*>& weights, std::span<const std::int64_t> first_rows,
                     WeightSize size, const View& y) {
    std::vector<GroupTile> tiles;
    for (std::size_t g = 0; g < weights.size(); ++g) {
        for (std::int64_t n0 = 0; n0 < size.outputs; n0 += tile_cols) {
            for (std::int64_t m0 = 0; m0 < first_rows[g + 1] - first_rows[g]; m0 += tile_rows) {
                tiles.push_back({g, m0, n0});
            }
        }
    }
    const std::int64_t rows = first_rows.back() - first_rows.front();
#pragma omp parallel for schedule(dynamic) if (worth_threads(rows * size.outputs * size.inputs))
    for (std::int64_t i = 0; i < std::ssize(tiles); ++i) {
        const GroupTile& tile = tiles[static_cast<std::size_t>(i)];
        const std::int64_t first = first_rows[tile.group];
        const MatmulShape shape{first_rows[tile.group + 1] - first, size.outputs, size.inputs};
        const View part{y.data + first * size.outputs * tensor::size_of(y.dtype), y.dtype, {shape.m, shape.n}};
        multiply_tile(x + first * size.inputs, weights[tile.group], shape, tile.m0, tile.n0, part);
    }
}

}  // namespace

WeightSize check_groups(const ConstView& x, const ConstView& w, WeightOrder order,
                        std::span<const std::int64_t> first_rows, const View& y) {
    check_rank("grouped_matmul", "x", x.shape, 2);
    check_rank("grouped_matmul", "w", w.shape, 3);
    check_length("grouped_matmul", "first_rows", first_rows.size(), w.shape[0] + 1);
    const bool ordered = std::is_sorted(first_rows.begin(), first_rows.end());
    if (!ordered || first_rows.front() != 0 || first_rows.back() != x.shape[0]) {
        reject("grouped_matmul", fmt::format("the groups do not cut the {} rows in order", x.shape[0]));
    }
    const WeightSize size = check_weight("grouped_matmul", {w.data, w.dtype, {w.shape[1], w.shape[2]}}, order);
    check_matmul(x, size.outputs, size.inputs, w.dtype, y);
    return size;
}

void ReferenceKernels::grouped_matmul(ConstView x, ConstView w, WeightOrder order,
                                      std::span<const std::int64_t> first_rows, View y) const {
    const WeightSize size = check_groups(x, w, order, first_rows, y);
    const std::int64_t bytes = size.outputs * size.inputs * tensor::size_of(w.dtype);
    std::vector<HugeBuffer> copies;
    std::vector<const std::byte*> data;
    for (std::int64_t g = 0; g < w.shape[0]; ++g) {
        const auto group = static_cast<std::size_t>(g);
        data.push_back(w.data + g * bytes);
        if (order == WeightOrder::in_out && first_rows[group] < first_rows[group + 1]) {
            copies.push_back(natural_copy({data.back(), w.dtype, {w.shape[1], w.shape[2]}}, order, size));
            data.back() = copies.back().data();
        }
    }
    const auto multiply_as = [&]<typename T>(const float* rows, T /*element*/) {
        std::vector<const T*> weights;
        for (const std::byte* group : data) {
            weights.push_back(reinterpret_cast<const T*>(group));
        }
        multiply_groups(rows, weights, first_rows, size, y);
    };
    if (x.dtype == DType::f32) {
        multiply_as(x.as<float>(), 0.0F);
        return;
    }
    std::vector<float> wide(static_cast<std::size_t>(x.count()));
    load_floats(x, 0, x.count(), wide.data());
    multiply_as(wide.data(), std::uint16_t{0});
}

std::string ReferenceKernels::describe() const {
    return fmt::format("reference ({})", tile_functions().name);
}

}  // namespace shardplan::kernels
