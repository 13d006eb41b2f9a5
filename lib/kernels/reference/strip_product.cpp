#include "kernels/reference/strip_product.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "kernels/checks.h"
#include "kernels/quantise.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/product_parts.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// Values of k in one step of a strip.
std::int64_t step_depth(DType dtype) {
    return dtype == DType::bf16 ? 2 : 1;
}

/// Elements of one strip.
std::int64_t strip_elements(std::int64_t inputs, DType dtype) {
    return round_up(inputs, step_depth(dtype)) * strip_columns;
}

/// Place of element (k, n) in the strips of a weight with K inputs.
class Places {
public:
    Places(WeightSize size, DType dtype) : strip_(strip_elements(size.inputs, dtype)), step_(step_depth(dtype)) {}
    std::int64_t operator()(std::int64_t k, std::int64_t n) const {
        return n / strip_columns * strip_ + (k / step_ * strip_columns + n % strip_columns) * step_ + k % step_;
    }

private:
    std::int64_t strip_;
    std::int64_t step_;
};

/// Calls visit(block of columns) in parallel.
template <typename Visit>
void for_each_block(WeightSize size, Visit visit) {
#pragma omp parallel for schedule(static) if (worth_threads(size.outputs * size.inputs))
    for (std::int64_t n0 = 0; n0 < size.outputs; n0 += block_columns) {
        visit(base::Interval{n0, std::min(size.outputs, n0 + block_columns)});
    }
}

/// Column n of w as floats.
void load_column(const ConstView& w, WeightOrder order, WeightSize size, std::int64_t n, std::vector<float>& column) {
    if (order == WeightOrder::out_in) {
        load_floats(w, n * size.inputs, size.inputs, column.data());
        return;
    }
    for (std::int64_t k = 0; k < size.inputs; ++k) {
        load_floats(w, k * size.outputs + n, 1, column.data() + k);
    }
}

/// Values of k unpacked at once, and rows that use them: what is unpacked stays in the second cache.
constexpr std::int64_t panel_depth = 256;
constexpr std::int64_t panel_rows = 96;

/// Sums over all k of some rows and one block of columns.
class BlockSums {
public:
    BlockSums(const float* x, const StripWeight& w, const MatmulShape& shape)
        : x_(x), w_(w), shape_(shape), strip_(strip_elements(shape.k, w.dtype)) {}

    void few(std::int64_t n0, Matrix<float> sums) const {
        const std::int64_t even = shape_.k - shape_.k % step_depth(w_.dtype);
        const TileShape shape{shape_.m, block_columns, even};
        if (w_.dtype == DType::bf16) {
            tile_functions().strips_bf16({x_, shape_.k}, pairs(n0), sums, shape);
        } else if (w_.dtype == DType::i8) {
            tile_functions().strips_s8({x_, shape_.k}, bytes(n0), sums, shape);
        }
        if (even < shape_.k) {  // stands in a pair with zeros, which must not meet what lies behind x
            float last[2 * block_columns];
            unpack(n0, even, 1, last);
            tile_functions().block_f32({x_ + even, shape_.k}, last, sums, {shape_.m, block_columns, 1});
        }
    }

    void many(std::int64_t n0, std::int64_t m0, std::int64_t rows, Matrix<float> sums) const {
        float panel[panel_depth * block_columns];
        for (std::int64_t k = 0; k < shape_.k; k += panel_depth) {
            const std::int64_t depth = std::min(panel_depth, shape_.k - k);
            unpack(n0, k, depth, panel);
            tile_functions().block_f32({x_ + m0 * shape_.k + k, shape_.k}, panel, sums, {rows, block_columns, depth});
        }
    }

private:
    Matrix<const std::uint32_t> pairs(std::int64_t n0) const {
        const std::int64_t strip = strip_ / 2;
        return {reinterpret_cast<const std::uint32_t*>(w_.data) + n0 / strip_columns * strip, strip};
    }
    Matrix<const std::int8_t> bytes(std::int64_t n0) const {
        return {reinterpret_cast<const std::int8_t*>(w_.data) + n0 / strip_columns * strip_, strip_};
    }

    /// @pre k begins a step
    void unpack(std::int64_t n0, std::int64_t k, std::int64_t depth, float* to) const {
        if (w_.dtype == DType::i8) {
            tile_functions().unpack_s8(bytes(n0), k, depth, to);
        } else {
            tile_functions().unpack_bf16(pairs(n0), k / 2, (depth + 1) / 2, to);
        }
    }

    const float* x_;
    const StripWeight& w_;
    const MatmulShape& shape_;
    std::int64_t strip_;
};

/// Stores sums of rows [m0, m0 + rows) and the block of columns from n0 on.
void store(const float* sums, std::int64_t m0, std::int64_t rows, std::int64_t n0, const StripWeight& w,
           const MatmulShape& shape, const View& y) {
    const std::int64_t cols = std::min(block_columns, shape.n - n0);
    for (std::int64_t i = 0; i < rows; ++i) {
        const float* row = sums + i * block_columns;
        float scaled[block_columns];
        if (!w.scales.empty()) {
            for (std::int64_t j = 0; j < cols; ++j) {
                scaled[j] = row[j] * w.scales[static_cast<std::size_t>(n0 + j)];
            }
            row = scaled;
        }
        store_floats(row, cols, y, (m0 + i) * shape.n + n0);
    }
}

HugeBuffer zeros(std::int64_t bytes) {
    HugeBuffer buffer(bytes);
    std::fill_n(buffer.data(), bytes, std::byte{0});
    return buffer;
}

}  // namespace

float quantise(std::span<float> weights) {
    float most = 0.0F;
    for (const float value : weights) {
        most = std::max(most, std::abs(value));
    }
    const float inverse = 127.0F / most;
    if (!std::isfinite(inverse)) {  // zeros, or too small for a scale
        std::fill(weights.begin(), weights.end(), 0.0F);
        return 0.0F;
    }
    for (float& value : weights) {
        value = std::clamp(std::nearbyint(value * inverse), -127.0F, 127.0F);
    }
    return most / 127.0F;
}

std::int64_t strip_bytes(WeightSize size, DType dtype) {
    return round_up(size.outputs, block_columns) / strip_columns * strip_elements(size.inputs, dtype) *
           tensor::size_of(dtype);
}

HugeBuffer pack_strips(const ConstView& w, WeightOrder order, WeightSize size) {
    HugeBuffer data = zeros(strip_bytes(size, w.dtype));
    const Places place(size, w.dtype);
    const auto* from = w.as<std::uint16_t>();
    auto* to = reinterpret_cast<std::uint16_t*>(data.data());
    const std::int64_t n_step = order == WeightOrder::out_in ? size.inputs : 1;
    const std::int64_t k_step = order == WeightOrder::out_in ? 1 : size.outputs;
    for_each_block(size, [&](base::Interval columns) {
        constexpr std::int64_t piece = 64;  // both sides of the transposition stay in the first cache
        for (std::int64_t k0 = 0; k0 < size.inputs; k0 += piece) {
            for (std::int64_t n = columns.begin; n < columns.end; ++n) {
                for (std::int64_t k = k0; k < std::min(size.inputs, k0 + piece); ++k) {
                    to[place(k, n)] = from[n * n_step + k * k_step];
                }
            }
        }
    });
    return data;
}

QuantisedStrips pack_quantised(const ConstView& w, WeightOrder order, WeightSize size) {
    QuantisedStrips result{zeros(strip_bytes(size, DType::i8)),
                           std::vector<float>(static_cast<std::size_t>(size.outputs))};
    auto* to = reinterpret_cast<std::int8_t*>(result.data.data());
    const Places place(size, DType::i8);
    for_each_block(size, [&](base::Interval columns) {
        std::vector<float> column(static_cast<std::size_t>(size.inputs));
        for (std::int64_t n = columns.begin; n < columns.end; ++n) {
            load_column(w, order, size, n, column);
            result.scales[static_cast<std::size_t>(n)] = quantise(column);
            for (std::int64_t k = 0; k < size.inputs; ++k) {
                to[place(k, n)] = static_cast<std::int8_t>(column[static_cast<std::size_t>(k)]);
            }
        }
    });
    return result;
}

QuantisedWeight::QuantisedWeight(const ConstView& w, WeightOrder order, WeightSize size)
    : Weight(size.inputs, size.outputs, DType::i8), packed_(pack_quantised(w, order, size)) {}

std::int64_t QuantisedWeight::packed_bytes() const {
    return packed_.data.bytes() + std::ssize(packed_.scales) * tensor::size_of(DType::f32);
}

void multiply_strips(const ConstView& x, const MatmulShape& shape, std::span<const StripPart> parts) {
    if (shape.m == 0 || parts.empty()) {
        return;
    }
    std::vector<float> room;
    const float* rows = as_floats(x, room);
    const bool few = shape.m <= small_rows;
    const std::int64_t row_blocks = few ? 1 : (shape.m + panel_rows - 1) / panel_rows;
    for_each_piece(parts, {block_columns, row_blocks, few ? shape.k : shape.m * shape.k}, [&](const PartPiece& piece) {
        float sums[panel_rows * block_columns];
        const StripPart& part = parts[piece.part];
        const MatmulShape whole{shape.m, part.n, shape.k};
        const BlockSums block(rows, part.w, whole);
        const std::int64_t m0 = piece.row_block * panel_rows;
        const std::int64_t count = std::min(panel_rows, shape.m - m0);
        std::fill_n(sums, count * block_columns, 0.0F);
        if (few) {
            block.few(piece.begin, {sums, block_columns});
        } else {
            block.many(piece.begin, m0, count, {sums, block_columns});
        }
        store(sums, m0, count, piece.begin, part.w, whole, part.y);
    });
}

bool add_quantised(const ConstView& x, const Weight& w, const View& y, MatmulShape& shape,
                   std::vector<StripPart>& parts) {
    const auto* quantised = dynamic_cast<const QuantisedWeight*>(&w);
    if (quantised == nullptr) {
        return false;
    }
    check_float("matmul", "x", x.dtype);
    shape = check_matmul(x, w.outputs(), w.inputs(), x.dtype, y);
    parts.push_back({quantised->strips(), shape.n, y});
    return true;
}

void multiply_strips(const ConstView& x, const StripWeight& w, const MatmulShape& shape, const View& y) {
    const StripPart part{w, shape.n, y};
    multiply_strips(x, shape, {&part, 1});
}

}  // namespace shardplan::kernels
