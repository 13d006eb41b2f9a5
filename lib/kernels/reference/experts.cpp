#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

/// Memory for one intermediate matrix; its views have as many rows as the expert at hand has tokens.
class Rows {
public:
    Rows(std::int64_t rows, std::int64_t width, DType dtype)
        : width_(width), dtype_(dtype), data_(static_cast<std::size_t>(rows * width * tensor::size_of(dtype))) {}
    View view(std::int64_t rows) { return {data_.data(), dtype_, {rows, width_}}; }

private:
    std::int64_t width_;
    DType dtype_;
    std::vector<std::byte> data_;
};

struct Sizes {
    std::int64_t rows = 0, experts = 0, inner = 0, in = 0, out = 0;
};

Sizes check_experts(const ConstView& x, const ConstView& routing, const ConstView& gate, const ConstView& up,
                    const ConstView& down, const View& y) {
    check_float("experts", "x", x.dtype);
    check_float("experts", "y", y.dtype);
    check_dtype("experts", "routing", routing.dtype, DType::f32);
    for (const ConstView* w : {&gate, &up, &down}) {
        check_dtype("experts", "weight", w->dtype, x.dtype);
        check_rank("experts", "weight", w->shape, 3);
    }
    if (x.shape.empty()) {
        reject("experts", "x needs at least one dimension");
    }
    const Sizes n{leading_count(x.shape), gate.shape[0], gate.shape[1], x.shape.back(), down.shape[1]};
    check_shape("experts", "gate", gate.shape, {n.experts, n.inner, n.in});
    check_shape("experts", "up", up.shape, gate.shape);
    check_shape("experts", "down", down.shape, {n.experts, n.out, n.inner});
    tensor::Shape wanted = x.shape;
    wanted.back() = n.experts;
    check_shape("experts", "routing", routing.shape, wanted);
    wanted.back() = n.out;
    check_shape("experts", "y", y.shape, wanted);
    return n;
}

ConstView matrix_of(const ConstView& w, std::int64_t expert) {
    const std::int64_t bytes = w.shape[1] * w.shape[2] * tensor::size_of(w.dtype);
    return {w.data + expert * bytes, w.dtype, {w.shape[1], w.shape[2]}};
}

}  // namespace

void ReferenceKernels::experts(ConstView x, ConstView routing, ConstView gate, ConstView up, ConstView down,
                               Activation activation, View y) const {
    const Sizes n = check_experts(x, routing, gate, up, down, y);
    const std::int64_t row_bytes = n.in * tensor::size_of(x.dtype);
    Rows taken(n.rows, n.in, x.dtype);
    Rows gated(n.rows, n.inner, DType::f32);
    Rows raised(n.rows, n.inner, DType::f32);
    Rows inner(n.rows, n.inner, x.dtype);
    Rows result(n.rows, n.out, DType::f32);
    std::vector<float> sums(static_cast<std::size_t>(n.rows * n.out), 0.0F);
    std::vector<std::int64_t> tokens;
    for (std::int64_t expert = 0; expert < n.experts; ++expert) {
        tokens.clear();
        for (std::int64_t row = 0; row < n.rows; ++row) {
            if (routing.as<float>()[row * n.experts + expert] != 0.0F) {
                tokens.push_back(row);
            }
        }
        const auto count = static_cast<std::int64_t>(tokens.size());
        if (count == 0) {
            continue;
        }
        const View rows = taken.view(count);
        for (std::int64_t i = 0; i < count; ++i) {
            std::memcpy(rows.data + i * row_bytes, x.data + tokens[static_cast<std::size_t>(i)] * row_bytes,
                        static_cast<std::size_t>(row_bytes));
        }
        matmul_plain(rows, matrix_of(gate, expert), WeightOrder::out_in, gated.view(count));
        matmul_plain(rows, matrix_of(up, expert), WeightOrder::out_in, raised.view(count));
        glu(gated.view(count), raised.view(count), activation, inner.view(count));
        matmul_plain(inner.view(count), matrix_of(down, expert), WeightOrder::out_in, result.view(count));
        const float* values = result.view(count).as<float>();
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = tokens[static_cast<std::size_t>(i)];
            const float weight = routing.as<float>()[row * n.experts + expert];
            for (std::int64_t o = 0; o < n.out; ++o) {
                sums[static_cast<std::size_t>(row * n.out + o)] += weight * values[i * n.out + o];
            }
        }
    }
    store_floats(sums.data(), n.rows * n.out, y, 0);
}

void ReferenceKernels::gate_rows(ConstView x, ConstView gate, View y) const {
    check_float("gate_rows", "x", x.dtype);
    check_float("gate_rows", "gate", gate.dtype);
    check_float("gate_rows", "y", y.dtype);
    check_shape("gate_rows", "y", y.shape, x.shape);
    if (x.shape.empty()) {
        reject("gate_rows", "x needs at least one dimension");
    }
    tensor::Shape wanted = x.shape;
    wanted.back() = 1;
    check_shape("gate_rows", "gate", gate.shape, wanted);
    const std::int64_t width = x.shape.back();
    std::vector<float> row(static_cast<std::size_t>(width));
    for (std::int64_t r = 0; r < leading_count(x.shape); ++r) {
        float logit = 0.0F;
        load_floats(gate, r, 1, &logit);
        const float factor = 1.0F / (1.0F + std::exp(-logit));
        load_floats(x, r * width, width, row.data());
        for (float& value : row) {
            value *= factor;
        }
        store_floats(row.data(), width, y, r * width);
    }
}

}  // namespace shardplan::kernels
