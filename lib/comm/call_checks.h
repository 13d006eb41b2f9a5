// What every collective demands of its arguments; std::runtime_error "<collective>: <values>" otherwise.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "comm/ordered_reduce.h"
#include "mesh/collective.h"
#include "tensor/view.h"

namespace shardplan::comm {

template <typename... Args>
[[noreturn]] void fail(mesh::CollectiveKind kind, fmt::format_string<Args...> text, Args&&... args) {
    throw std::runtime_error(
        fmt::format("{}: {}", mesh::to_string(kind), fmt::format(text, std::forward<Args>(args)...)));
}

void expect_dim(mesh::CollectiveKind kind, int dim, const tensor::Shape& shape);

void expect_output(mesh::CollectiveKind kind, const tensor::ConstView& in, const tensor::View& out,
                   const tensor::Shape& expected);

void expect_staging(mesh::CollectiveKind kind, std::int64_t n, const tensor::ConstView& in, const tensor::View& out,
                    std::span<std::byte> staging);

void expect_reducible(mesh::CollectiveKind kind, Reduction reduction, tensor::DType dtype);

/// Counts of rows for each of n members that fit `room` rows.
void expect_rows(std::span<const std::int64_t> rows, std::int64_t n, std::int64_t room, std::string_view what);

/// `shape` with dimension dim * n.
tensor::Shape multiplied(tensor::Shape shape, int dim, std::int64_t n);

/// `shape` with dimension dim / n; throws unless n divides it.
tensor::Shape divided(mesh::CollectiveKind kind, tensor::Shape shape, int dim, std::int64_t n);

}  // namespace shardplan::comm
