#include "comm/call_checks.h"

#include <iterator>
#include <limits>

#include "base/checked.h"

namespace shardplan::comm {

using mesh::CollectiveKind;
using tensor::ConstView;
using tensor::DType;
using tensor::Shape;
using tensor::View;

void expect_dim(CollectiveKind kind, int dim, const Shape& shape) {
    if (dim < 0 || dim >= static_cast<int>(shape.size())) {
        fail(kind, "dimension {} of a tensor of shape {}", dim, tensor::to_string(shape));
    }
}

void expect_output(CollectiveKind kind, const ConstView& in, const View& out, const Shape& expected) {
    if (out.shape != expected) {
        fail(kind, "the output for an input of shape {} has shape {}, not {}", tensor::to_string(in.shape),
             tensor::to_string(out.shape), tensor::to_string(expected));
    }
    if (out.dtype != in.dtype) {
        fail(kind, "input of {}, output of {}", tensor::to_string(in.dtype), tensor::to_string(out.dtype));
    }
}

void expect_staging(CollectiveKind kind, std::int64_t n, const ConstView& in, const View& out,
                    std::span<std::byte> staging) {
    const std::int64_t needed = mesh::staging_bytes(kind, n, in.bytes(), out.bytes(), tensor::size_of(in.dtype));
    if (n > 1 && std::ssize(staging) < needed) {
        fail(kind, "{} bytes of staging, {} are needed", staging.size(), needed);
    }
}

void expect_reducible(CollectiveKind kind, Reduction reduction, DType dtype) {
    if (!can_reduce(reduction, dtype)) {
        fail(kind, "not possible for {}", tensor::to_string(dtype));
    }
}

void expect_rows(std::span<const std::int64_t> rows, std::int64_t n, std::int64_t room, std::string_view what) {
    constexpr CollectiveKind kind = CollectiveKind::all_to_all_v;
    if (std::ssize(rows) != n) {
        fail(kind, "{} counts of rows that are {} for a group of {}", rows.size(), what, n);
    }
    std::int64_t total = 0;
    for (const std::int64_t count : rows) {
        if (count < 0 || count > room - total) {
            fail(kind, "the rows that are {} do not fit into {}", what, room);
        }
        total += count;
    }
    if (total > std::numeric_limits<std::int32_t>::max()) {
        fail(kind, "{} rows are {}, at most 2^31 - 1 can be", total, what);
    }
}

Shape multiplied(Shape shape, int dim, std::int64_t n) {
    std::int64_t& size = shape[static_cast<std::size_t>(dim)];
    size = base::checked_mul(size, n);
    return shape;
}

Shape divided(CollectiveKind kind, Shape shape, int dim, std::int64_t n) {
    std::int64_t& size = shape[static_cast<std::size_t>(dim)];
    if (size % n != 0) {
        fail(kind, "dimension {} of shape {} cannot be cut into {} equal blocks", dim, tensor::to_string(shape), n);
    }
    size /= n;
    return shape;
}

}  // namespace shardplan::comm
