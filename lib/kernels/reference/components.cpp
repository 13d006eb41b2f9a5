#include <fmt/format.h>

#include <cstring>

#include "kernels/checks.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

// What moves components of heads about, and products of each head with its own matrix.
namespace shardplan::kernels {
namespace {

/// `count` rows of `bytes`; row r lies at r * stride.
void copy_rows(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t count, std::int64_t bytes) {
    if (bytes == 0) {
        return;
    }
#pragma omp parallel for schedule(static) if (worth_threads(count * bytes / 4))
    for (std::int64_t row = 0; row < count; ++row) {
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(bytes));
    }
}

void check_head_matmul(const ConstView& x, const ConstView& w, WeightOrder order, const View& y) {
    check_rank("head_matmul", "x", x.shape, 4);
    check_rank("head_matmul", "w", w.shape, 2);
    check_float("head_matmul", "x", x.dtype);
    check_dtype("head_matmul", "w", w.dtype, x.dtype);
    check_rank("head_matmul", "y", y.shape, 4);
    check_shape("head_matmul", "y", y.shape, {x.shape[0], x.shape[1], x.shape[2], y.shape[3]});
    const std::int64_t in = x.shape[3];
    const std::int64_t out = y.shape[3];
    const bool out_in = order == WeightOrder::out_in;
    check_shape("head_matmul", "w", w.shape, {x.shape[2] * (out_in ? out : in), out_in ? in : out});
}

}  // namespace

void ReferenceKernels::take(ConstView x, std::int64_t first, View y) const {
    check_dtype("take", "y", y.dtype, x.dtype);
    if (x.shape.empty() || y.shape.size() != x.shape.size()) {
        reject("take", fmt::format("x of {} and y of {} dimensions", x.shape.size(), y.shape.size()));
    }
    tensor::Shape wanted = x.shape;
    wanted.back() = y.shape.back();
    check_shape("take", "y", y.shape, wanted);
    if (first < 0 || first + y.shape.back() > x.shape.back()) {
        reject("take", fmt::format("components {} ... {} of {}", first, first + y.shape.back(), x.shape.back()));
    }
    const std::int64_t size = tensor::size_of(x.dtype);
    copy_rows(x.data + first * size, x.shape.back() * size, y.data, y.shape.back() * size, leading_count(x.shape),
              y.shape.back() * size);
}

void ReferenceKernels::join(ConstView x, ConstView tail, View y) const {
    check_rank("join", "x", x.shape, 4);
    check_rank("join", "tail", tail.shape, 4);
    check_dtype("join", "tail", tail.dtype, x.dtype);
    check_dtype("join", "y", y.dtype, x.dtype);
    const std::int64_t heads = x.shape[2];
    const bool shared = tail.shape[2] == 1;
    check_shape("join", "tail", tail.shape, {x.shape[0], x.shape[1], shared ? 1 : heads, tail.shape[3]});
    check_shape("join", "y", y.shape, {x.shape[0], x.shape[1], heads, x.shape[3] + tail.shape[3]});
    const std::int64_t size = tensor::size_of(x.dtype);
    const std::int64_t head = x.shape[3] * size;
    const std::int64_t rest = tail.shape[3] * size;
    const std::int64_t row = head + rest;
    const std::int64_t tokens = x.shape[0] * x.shape[1];
    copy_rows(x.data, head, y.data, row, tokens * heads, head);
    for (std::int64_t h = 0; h < heads; ++h) {
        copy_rows(tail.data + (shared ? 0 : h * rest), shared ? rest : heads * rest, y.data + h * row + head,
                  heads * row, tokens, rest);
    }
}

void ReferenceKernels::head_matmul(ConstView x, ConstView w, WeightOrder order, View y) const {
    check_head_matmul(x, w, order, y);
    const std::int64_t rows = x.shape[0] * x.shape[1];
    const std::int64_t heads = x.shape[2];
    const std::int64_t in = x.shape[3];
    const std::int64_t out = y.shape[3];
    const std::int64_t x_bytes = in * tensor::size_of(x.dtype);
    const std::int64_t y_bytes = out * tensor::size_of(y.dtype);
    const std::int64_t w_bytes = in * out * tensor::size_of(w.dtype);
    std::vector<std::byte> head_x(static_cast<std::size_t>(rows * x_bytes));
    std::vector<std::byte> head_y(static_cast<std::size_t>(rows * y_bytes));
    const tensor::Shape matrix = order == WeightOrder::out_in ? tensor::Shape{out, in} : tensor::Shape{in, out};
    for (std::int64_t h = 0; h < heads; ++h) {
        copy_rows(x.data + h * x_bytes, heads * x_bytes, head_x.data(), x_bytes, rows, x_bytes);
        matmul_plain({head_x.data(), x.dtype, {rows, in}}, {w.data + h * w_bytes, w.dtype, matrix}, order,
                     {head_y.data(), y.dtype, {rows, out}});
        copy_rows(head_y.data(), y_bytes, y.data + h * y_bytes, heads * y_bytes, rows, y_bytes);
    }
}

}  // namespace shardplan::kernels
