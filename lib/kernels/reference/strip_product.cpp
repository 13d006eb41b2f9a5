#include "kernels/reference/strip_product.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interval.h"
#include "kernels/checks.h"
#include "kernels/quantise.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/packed_rows.h"
#include "kernels/reference/product_parts.h"
#include "kernels/reference/row_groups.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/threads.h"
#include "kernels/reference/tiles.h"

namespace shardplan::kernels {
namespace {

using base::Interval;
using tensor::DType;

/// Columns of which the sums of many rows are formed at once: those of a piece of k stay in the second cache.
constexpr std::int64_t most_columns = 128;

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
        visit(Interval{n0, std::min(size.outputs, n0 + block_columns)});
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

/// Elements of a strip as `T`: what stands at k, which begins a step.
template <typename T>
const T* strip_at(const StripWeight& w, std::int64_t inputs, std::int64_t strip, std::int64_t k) {
    const std::int64_t element = strip * strip_elements(inputs, w.dtype) + k * strip_columns;
    return reinterpret_cast<const T*>(w.data + element * tensor::size_of(w.dtype));
}

/// Elements of type T from strip to strip.
template <typename T>
std::int64_t strip_stride(const StripWeight& w, std::int64_t inputs) {
    return strip_elements(inputs, w.dtype) * tensor::size_of(w.dtype) / static_cast<std::int64_t>(sizeof(T));
}

/// [depth, 16] of a strip from k on, as floats: where it lies, or unpacked into `room`. @pre k begins a step
const float* strip_floats(const StripWeight& w, std::int64_t inputs, std::int64_t strip, Interval k, float* room) {
    if (w.dtype == DType::f32) {
        return strip_at<float>(w, inputs, strip, k.begin);
    }
    if (w.dtype == DType::i8) {
        tile_functions().unpack_s8(strip_at<std::int8_t>(w, inputs, strip, k.begin), k.size(), room);
    } else {
        tile_functions().unpack_bf16(strip_at<std::uint32_t>(w, inputs, strip, k.begin), (k.size() + 1) / 2, room);
    }
    return room;
}

/// Sums over all k of few rows and the block of columns from n0 on.
void sum_few(const float* x, const StripWeight& w, const MatmulShape& shape, std::int64_t n0, Matrix<float> sums) {
    const std::int64_t even = shape.k - shape.k % step_depth(w.dtype);
    const std::int64_t strip = n0 / strip_columns;
    const TileShape tile{shape.m, block_columns, even};
    const auto strips_of = [&]<typename T>(T /*element*/) {
        return Matrix<const T>{strip_at<T>(w, shape.k, strip, 0), strip_stride<T>(w, shape.k)};
    };
    if (w.dtype == DType::f32) {
        tile_functions().strips_f32({x, shape.k}, strips_of(0.0F), sums, tile);
    } else if (w.dtype == DType::i8) {
        tile_functions().strips_s8({x, shape.k}, strips_of(std::int8_t{0}), sums, tile);
    } else {
        tile_functions().strips_bf16({x, shape.k}, strips_of(std::uint32_t{0}), sums, tile);
    }
    if (even < shape.k) {  // stands in a pair with zeros, which must not meet what lies behind x
        float last[block_columns];
        for (std::int64_t i = 0; i < block_columns; i += strip_columns) {
            float pair[2 * strip_columns];
            strip_floats(w, shape.k, strip + i / strip_columns, {even, shape.k}, pair);
            std::copy_n(pair, strip_columns, last + i);
        }
        tile_functions().block_f32({x + even, shape.k}, last, sums, {shape.m, block_columns, 1});
    }
}

/// Stores row `row` of y: its columns [columns.begin, columns.end).
void store(const float* sums, std::int64_t row, Interval columns, const StripPart& part) {
    float scaled[most_columns];
    if (!part.w.scales.empty()) {
        for (std::int64_t j = 0; j < columns.size(); ++j) {
            scaled[j] = sums[j] * part.w.scales[static_cast<std::size_t>(columns.begin + j)];
        }
        sums = scaled;
    }
    store_floats(sums, columns.size(), part.y, row * part.n + columns.begin);
}

void multiply_few_rows(const ConstView& x, const MatmulShape& shape, std::span<const StripPart> parts) {
    std::vector<float> room;
    const float* rows = as_floats(x, room);
    for_each_piece(parts, {block_columns, 1, shape.k}, [&](const PartPiece& piece) {
        float sums[small_rows * block_columns] = {};
        const StripPart& part = parts[piece.part];
        sum_few(rows, part.w, {shape.m, part.n, shape.k}, piece.begin, {sums, block_columns});
        for (std::int64_t i = 0; i < shape.m; ++i) {
            store(sums + i * block_columns, i, {piece.begin, piece.end}, part);
        }
    });
}

/// Asks for the part of a strip that is needed next, a bit with each group of rows.
class Prefetch {
public:
    Prefetch(const std::byte* begin, std::int64_t bytes, std::int64_t calls)
        : at_(begin), end_(begin + bytes), each_((bytes / calls + line) / line * line) {}
    void operator()() {
        for (const std::byte* stop = std::min(end_, at_ + each_); at_ < stop; at_ += line) {
            __builtin_prefetch(at_, 0, 2);
        }
    }

private:
    static constexpr std::int64_t line = 64;
    const std::byte* at_;
    const std::byte* end_;
    std::int64_t each_;
};

/// Sums of all rows and the strips of columns [columns.begin, columns.end) of one part.
void sum_many(const PackedRows& rows, std::int64_t inputs, const StripWeight& w, Interval columns, Matrix<float> sums) {
    float room[PackedRows::piece * strip_columns];
    const Interval strips{columns.begin / strip_columns, (columns.end + strip_columns - 1) / strip_columns};
    for (std::int64_t k = 0; k < inputs; k += PackedRows::piece) {
        const Interval piece{k, std::min(inputs, k + PackedRows::piece)};
        for (std::int64_t strip = strips.begin; strip < strips.end; ++strip) {
            const float* values = strip_floats(w, inputs, strip, piece, room);
            Prefetch next(strip + 1 < strips.end ? strip_at<std::byte>(w, inputs, strip + 1, k) : nullptr,
                          strip + 1 < strips.end ? piece.size() * strip_columns * tensor::size_of(w.dtype) : 0,
                          rows.groups());
            for (std::int64_t g = 0; g < rows.groups(); ++g) {
                next();
                const Interval group = rows.group(g);
                group_functions().multiply(
                    rows.values(g, piece), values,
                    {sums.data + group.begin * sums.stride + (strip - strips.begin) * strip_columns, sums.stride},
                    {group.size(), strip_columns, piece.size()});
            }
        }
    }
}

/// Columns of a piece: as many as the cache has room for, fewer where threads would go without.
std::int64_t piece_width(std::span<const StripPart> parts) {
    std::int64_t columns = 0;
    for (const StripPart& part : parts) {
        columns += part.n;
    }
    const std::int64_t pieces = 2 * omp_get_max_threads();
    return std::clamp(round_up(columns / pieces, strip_columns), strip_columns, most_columns);
}

void multiply_many_rows(const ConstView& x, const MatmulShape& shape, std::span<const StripPart> parts) {
    const std::int64_t chunks = PackedRows::chunks(shape.m, shape.k);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const Interval rows{shape.m * chunk / chunks, shape.m * (chunk + 1) / chunks};
        const PackedRows packed(x, rows, shape.k);
        for_each_piece(parts, {piece_width(parts), 1, rows.size() * shape.k}, [&](const PartPiece& piece) {
            float sums[PackedRows::most_rows * most_columns];
            const StripPart& part = parts[piece.part];
            std::fill_n(sums, rows.size() * most_columns, 0.0F);
            sum_many(packed, shape.k, part.w, {piece.begin, piece.end}, {sums, most_columns});
            for (std::int64_t i = 0; i < rows.size(); ++i) {
                store(sums + i * most_columns, rows.begin + i, {piece.begin, piece.end}, part);
            }
        });
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
        if (!std::isfinite(value)) {  // all of the channel, as all of its sums would be
            std::fill(weights.begin(), weights.end(), 1.0F);
            return std::numeric_limits<float>::quiet_NaN();
        }
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
    const std::int64_t n_step = order == WeightOrder::out_in ? size.inputs : 1;
    const std::int64_t k_step = order == WeightOrder::out_in ? 1 : size.outputs;
    const auto copy = [&]<typename T>(const T* from) {
        T* to = reinterpret_cast<T*>(data.data());
        for_each_block(size, [&](Interval columns) {
            constexpr std::int64_t piece = 64;  // both sides of the transposition stay in the first cache
            for (std::int64_t k0 = 0; k0 < size.inputs; k0 += piece) {
                for (std::int64_t n = columns.begin; n < columns.end; ++n) {
                    for (std::int64_t k = k0; k < std::min(size.inputs, k0 + piece); ++k) {
                        to[place(k, n)] = from[n * n_step + k * k_step];
                    }
                }
            }
        });
    };
    if (w.dtype == DType::f32) {
        copy(w.as<float>());
    } else {
        copy(w.as<std::uint16_t>());
    }
    return data;
}

QuantisedStrips pack_quantised(const ConstView& w, WeightOrder order, WeightSize size) {
    QuantisedStrips result{zeros(strip_bytes(size, DType::i8)),
                           std::vector<float>(static_cast<std::size_t>(size.outputs))};
    auto* to = reinterpret_cast<std::int8_t*>(result.data.data());
    const Places place(size, DType::i8);
    for_each_block(size, [&](Interval columns) {
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
    if (shape.m <= small_rows) {
        multiply_few_rows(x, shape, parts);
    } else {
        multiply_many_rows(x, shape, parts);
    }
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
