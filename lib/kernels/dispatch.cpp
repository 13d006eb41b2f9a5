#include "kernels/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"

namespace shardplan::kernels {

using base::Interval;
using tensor::ConstView;
using tensor::DType;
using tensor::View;

namespace {

void check_dispatch(const ConstView& x, const ConstView& routing, std::span<const Interval> experts,
                    const DispatchBuffers& buffers) {
    check_dtype("dispatch_tokens", "routing", routing.dtype, DType::f32);
    check_rank("dispatch_tokens", "rows", buffers.rows.shape, 2);
    check_dtype("dispatch_tokens", "rows", buffers.rows.dtype, x.dtype);
    if (x.shape.empty() || routing.shape.size() != x.shape.size() || experts.empty()) {
        reject("dispatch_tokens", "x and routing have the same leading dimensions, and there is at least one rank");
    }
    const std::int64_t width = x.shape.back();
    check_shape("dispatch_tokens", "rows", buffers.rows.shape, {buffers.rows.shape[0], width});
    check_shape("dispatch_tokens", "routing rows", buffers.routing.shape,
                {buffers.rows.shape[0], experts.front().size()});
    check_shape("dispatch_tokens", "tokens", buffers.tokens.shape, {buffers.rows.shape[0]});
    check_shape("dispatch_tokens", "counts", buffers.counts.shape, {std::ssize(experts)});
    check_dtype("dispatch_tokens", "tokens", buffers.tokens.dtype, DType::i32);
    check_dtype("dispatch_tokens", "counts", buffers.counts.dtype, DType::i64);
    for (const Interval& range : experts) {
        if (range.begin < 0 || range.end > routing.shape.back() || range.size() != experts.front().size()) {
            reject("dispatch_tokens",
                   fmt::format("experts {} to {} of {}", range.begin, range.end, routing.shape.back()));
        }
    }
}

}  // namespace

void dispatch_tokens(const ConstView& x, const ConstView& routing, std::span<const Interval> experts,
                     const DispatchBuffers& buffers) {
    check_dispatch(x, routing, experts, buffers);
    const std::int64_t tokens = leading_count(x.shape);
    const std::int64_t bytes = x.shape.back() * tensor::size_of(x.dtype);
    std::int64_t row = 0;
    for (std::size_t rank = 0; rank < experts.size(); ++rank) {
        const std::int64_t first = row;
        for (std::int64_t token = 0; token < tokens; ++token) {
            const float* weights = routing.as<float>() + token * routing.shape.back() + experts[rank].begin;
            const float* end = weights + experts[rank].size();
            if (std::all_of(weights, end, [](float weight) { return weight == 0.0F; })) {
                continue;
            }
            if (row == buffers.rows.shape[0]) {
                reject("dispatch_tokens", fmt::format("more than {} rows", row));
            }
            std::memcpy(buffers.rows.data + row * bytes, x.data + token * bytes, static_cast<std::size_t>(bytes));
            std::copy(weights, end, buffers.routing.as<float>() + row * experts[rank].size());
            buffers.tokens.as<std::int32_t>()[row] = static_cast<std::int32_t>(token);
            ++row;
        }
        buffers.counts.as<std::int64_t>()[rank] = row - first;
    }
}

std::int64_t row_count(const ConstView& counts) {
    check_dtype("row_count", "counts", counts.dtype, DType::i64);
    const auto* values = counts.as<std::int64_t>();
    return std::accumulate(values, values + counts.count(), std::int64_t{0});
}

void combine_tokens(const ConstView& rows, const ConstView& tokens, const ConstView& counts, const View& y) {
    check_rank("combine_tokens", "rows", rows.shape, 2);
    check_shape("combine_tokens", "tokens", tokens.shape, {rows.shape[0]});
    check_dtype("combine_tokens", "tokens", tokens.dtype, DType::i32);
    const std::int64_t used = row_count(counts);
    if (y.shape.empty() || y.shape.back() != rows.shape[1] || used > rows.shape[0]) {
        reject("combine_tokens",
               fmt::format("{} rows of {} into {}", used, tensor::to_string(rows.shape), tensor::to_string(y.shape)));
    }
    std::vector<std::vector<std::int64_t>> rows_of(static_cast<std::size_t>(leading_count(y.shape)));
    for (std::int64_t row = 0; row < used; ++row) {
        rows_of.at(static_cast<std::size_t>(tokens.as<std::int32_t>()[row])).push_back(row);
    }
    const std::int64_t width = rows.shape[1];
    std::vector<float> sums(static_cast<std::size_t>(width));
    std::vector<float> values(sums.size());
    for (std::size_t token = 0; token < rows_of.size(); ++token) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (const std::int64_t row : rows_of[token]) {
            load_floats(rows, row * width, width, values.data());
            for (std::size_t i = 0; i < sums.size(); ++i) {
                sums[i] += values[i];
            }
        }
        store_floats(sums.data(), width, y, static_cast<std::int64_t>(token) * width);
    }
}

}  // namespace shardplan::kernels
