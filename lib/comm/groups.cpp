#include "comm/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/interval.h"
#include "comm/blocks.h"
#include "comm/call_checks.h"
#include "comm/window_collectives.h"

namespace shardplan::comm {

using base::Interval;
using mesh::AxisList;
using mesh::CollectiveKind;
using tensor::ConstView;
using tensor::DType;
using tensor::Shape;
using tensor::View;

/// What the members of a group must have in common in one collective.
struct Groups::Call {
    CollectiveKind kind;
    DType dtype;
    std::int64_t count;
    int dim = -1;
    int second_dim = -1;

    friend bool operator==(const Call&, const Call&) = default;
};

namespace {

void copy_whole(const ConstView& in, const View& out) {
    if (in.data != out.data && in.bytes() > 0) {
        std::memcpy(out.data, in.data, static_cast<std::size_t>(in.bytes()));
    }
}

/// The blocks of `in` along `dim`, one behind the other: where they are, or packed into `scratch`.
const std::byte* packed_blocks(const ConstView& in, int dim, std::int64_t n, std::byte* scratch) {
    if (blocks_are_contiguous(in.shape, dim)) {
        return in.data;
    }
    pack_blocks(in, dim, n, scratch);
    return scratch;
}

/// Chunk p of `count` elements.
Interval chunk(std::int64_t count, std::int64_t n, std::int64_t p) {
    return {count * p / n, count * (p + 1) / n};
}

std::vector<Interval> chunks_in_bytes(std::int64_t count, std::int64_t n, std::int64_t element_bytes) {
    std::vector<Interval> chunks;
    for (std::int64_t p = 0; p < n; ++p) {
        const Interval elements = chunk(count, n, p);
        chunks.push_back({elements.begin * element_bytes, elements.end * element_bytes});
    }
    return chunks;
}

/// Up to how many bytes of input the window is the faster way where there is the choice: data that are only moved pass
/// through it twice, which MPI can avoid; with more than the caches hold that is what counts. Measured.
std::int64_t longest_in_window(CollectiveKind kind, std::int64_t n) {
    switch (kind) {
        case CollectiveKind::all_gather: return (std::int64_t{32} << 20) / n;
        case CollectiveKind::all_to_all:
        case CollectiveKind::permute: return std::int64_t{4} << 20;
        default: return std::numeric_limits<std::int64_t>::max();
    }
}

}  // namespace

Groups::Groups(const mesh::Mesh& mesh, std::int64_t rank, const GroupOptions& options,
               std::unique_ptr<Transport> transport)
    : mesh_(mesh), rank_(rank), options_(options), transport_(std::move(transport)) {
    if (!transport_ && mesh_.device_count() != 1) {
        throw std::runtime_error(
            fmt::format("a mesh of {} devices needs a transport between them", mesh_.device_count()));
    }
    if (options_.window_half_bytes < 64 || options_.window_half_bytes % 64 != 0) {
        throw std::runtime_error(
            fmt::format("window_half_bytes is {}, must be a positive multiple of 64", options_.window_half_bytes));
    }
    if (options_.max_call_bytes < 8 || options_.max_call_bytes > std::int64_t{1} << 30) {
        throw std::runtime_error(fmt::format("max_call_bytes is {}, must be from 8 to 2^30", options_.max_call_bytes));
    }
}

void Groups::compare_calls(const AxisList& axes, const Call& call, std::int64_t n) {
    using Row = std::array<std::int64_t, 5>;
    const Row own{static_cast<std::int64_t>(call.kind), static_cast<std::int64_t>(call.dtype), call.count, call.dim,
                  call.second_dim};
    std::vector<Row> rows(static_cast<std::size_t>(n));
    transport_->all_gather(axes, reinterpret_cast<const std::byte*>(own.data()),
                           reinterpret_cast<std::byte*>(rows.data()), sizeof(Row));
    const auto other = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row != rows[0]; });
    if (other == rows.end()) {
        return;
    }
    const auto describe = [](const Row& row) {
        return fmt::format("{} of {} {} (dimensions {}, {})", mesh::to_string(static_cast<CollectiveKind>(row[0])),
                           row[2], tensor::to_string(static_cast<DType>(row[1])), row[3], row[4]);
    };
    throw std::runtime_error(fmt::format("members of a group call different collectives: position 0 {}; position {} {}",
                                         describe(rows[0]), other - rows.begin(), describe(*other)));
}

Groups::Member Groups::enter(const AxisList& axes, const Call& call) {
    const Member me{mesh_.size(axes), mesh_.position(rank_, axes)};
    if (me.n == 1) {
        return me;
    }
    if (options_.check_calls && call.kind != CollectiveKind::slice) {
        compare_calls(axes, call, me.n);
    }
    Traffic& traffic = traffic_[static_cast<std::size_t>(call.kind)];
    traffic.calls += 1;
    traffic.payload_bytes += call.count * tensor::size_of(call.dtype);
    return me;
}

Window* Groups::window(CollectiveKind kind, const AxisList& axes, std::int64_t bytes) {
    if (options_.transport == TransportChoice::mpi ||
        (options_.transport == TransportChoice::automatic && bytes > longest_in_window(kind, mesh_.size(axes)))) {
        return nullptr;
    }
    Window* window = transport_->window(axes);
    if (window == nullptr && options_.transport == TransportChoice::shared) {
        const std::vector<WindowReport> reports = transport_->windows();
        const auto own = std::find_if(reports.begin(), reports.end(), [&](const auto& r) { return r.axes == axes; });
        fail(kind, "no shared memory between the ranks of a group: {}", own->refused);
    }
    return window;
}

std::vector<WindowReport> Groups::windows() const {
    return transport_ ? transport_->windows() : std::vector<WindowReport>{};
}

void Groups::sent(CollectiveKind kind, std::int64_t bytes) {
    traffic_[static_cast<std::size_t>(kind)].wire_bytes += bytes;
}

void Groups::all_gather(const AxisList& axes, int dim, const ConstView& in, const View& out,
                        std::span<std::byte> staging) {
    constexpr CollectiveKind kind = CollectiveKind::all_gather;
    const Member me = enter(axes, {kind, in.dtype, in.count(), dim});
    expect_dim(kind, dim, in.shape);
    expect_output(kind, in, out, multiplied(in.shape, dim, me.n));
    expect_staging(kind, me.n, in, out, staging);
    if (me.n == 1 || in.bytes() == 0) {
        return copy_whole(in, out);
    }
    if (Window* shared = window(kind, axes, in.bytes())) {
        window_all_gather(*shared, dim, in, out);
    } else if (blocks_are_contiguous(out.shape, dim)) {
        transport_->all_gather(axes, in.data, out.data, in.bytes());
    } else {
        transport_->all_gather(axes, in.data, staging.data(), in.bytes());
        unpack_blocks(staging.data(), dim, me.n, out);
    }
    sent(kind, (me.n - 1) * in.bytes());
}

void Groups::reduce_scatter(const AxisList& axes, int dim, const ConstView& in, const View& out,
                            std::span<std::byte> staging) {
    constexpr CollectiveKind kind = CollectiveKind::reduce_scatter;
    const Member me = enter(axes, {kind, in.dtype, in.count(), dim});
    expect_dim(kind, dim, in.shape);
    expect_output(kind, in, out, divided(kind, in.shape, dim, me.n));
    expect_staging(kind, me.n, in, out, staging);
    expect_reducible(kind, Reduction::sum, in.dtype);
    if (me.n == 1 || in.bytes() == 0) {
        return copy_whole(in, out);
    }
    if (Window* shared = window(kind, axes, in.bytes())) {
        window_reduce_scatter(*shared, dim, in, out);
    } else {
        std::byte* received = staging.data() + in.bytes();
        const std::byte* blocks = packed_blocks(in, dim, me.n, staging.data());
        transport_->all_to_all(axes, blocks, received, out.bytes());
        ordered_reduce(Reduction::sum, in.dtype, received, me.n, out.count(), out.data);
    }
    sent(kind, (me.n - 1) * out.bytes());
}

void Groups::reduce_scatter_gather(const AxisList& axes, int dim, const ConstView& partial, const View& reduced,
                                   const std::function<void()>& between, const ConstView& source, const View& out,
                                   std::span<std::byte> staging) {
    reduce_scatter(axes, dim, partial, reduced, staging);
    between();
    all_gather(axes, dim, source, out, staging);
}

void Groups::all_reduce(const AxisList& axes, const View& data, std::span<std::byte> staging) {
    reduce_in_place(Reduction::sum, axes, data, staging);
}

void Groups::all_reduce_max(const AxisList& axes, const View& data, std::span<std::byte> staging) {
    reduce_in_place(Reduction::max, axes, data, staging);
}

void Groups::reduce_in_place(Reduction reduction, const AxisList& axes, const View& data,
                             std::span<std::byte> staging) {
    const CollectiveKind kind =
        reduction == Reduction::sum ? CollectiveKind::all_reduce : CollectiveKind::all_reduce_max;
    const Member me = enter(axes, {kind, data.dtype, data.count()});
    expect_staging(kind, me.n, data, data, staging);
    expect_reducible(kind, reduction, data.dtype);
    const std::int64_t count = data.count();
    if (me.n == 1 || count == 0) {
        return;
    }
    const std::int64_t element = tensor::size_of(data.dtype);
    if (Window* shared = window(kind, axes, data.bytes())) {
        window_all_reduce(*shared, reduction, data);
        const std::int64_t own = chunk(count, me.n, me.position).size() * element;
        return sent(kind, data.bytes() - own + (me.n - 1) * own);
    }
    const std::int64_t segment = options_.max_call_bytes / element;
    for (std::int64_t begin = 0; begin < count; begin += segment) {
        const View part{data.data + begin * element, data.dtype, {std::min(segment, count - begin)}};
        reduce_segment(reduction, axes, me, part, staging.data());
    }
}

void Groups::reduce_segment(Reduction reduction, const AxisList& axes, Member me, const View& segment,
                            std::byte* staging) {
    const std::int64_t element = tensor::size_of(segment.dtype);
    const std::vector<Interval> chunks = chunks_in_bytes(segment.count(), me.n, element);
    const Interval own = chunks[static_cast<std::size_t>(me.position)];
    transport_->scatter_chunks(axes, segment.data, chunks, staging);
    ordered_reduce(reduction, segment.dtype, staging, me.n, own.size() / element, segment.data + own.begin);
    transport_->gather_chunks(axes, segment.data, chunks);
    const std::int64_t scattered = segment.bytes() - own.size();
    sent(reduction == Reduction::sum ? CollectiveKind::all_reduce : CollectiveKind::all_reduce_max,
         scattered + (me.n - 1) * own.size());
}

void Groups::all_to_all(const AxisList& axes, int split_dim, int concat_dim, const ConstView& in, const View& out,
                        std::span<std::byte> staging) {
    constexpr CollectiveKind kind = CollectiveKind::all_to_all;
    const Member me = enter(axes, {kind, in.dtype, in.count(), split_dim, concat_dim});
    expect_dim(kind, split_dim, in.shape);
    expect_dim(kind, concat_dim, in.shape);
    expect_output(kind, in, out, multiplied(divided(kind, in.shape, split_dim, me.n), concat_dim, me.n));
    expect_staging(kind, me.n, in, out, staging);
    if (me.n == 1 || in.bytes() == 0) {
        return copy_whole(in, out);
    }
    const std::int64_t block_bytes = in.bytes() / me.n;
    sent(kind, (me.n - 1) * block_bytes);
    if (Window* shared = window(kind, axes, in.bytes())) {
        return window_all_to_all(*shared, split_dim, concat_dim, in, out);
    }
    const std::byte* blocks = packed_blocks(in, split_dim, me.n, staging.data());
    if (blocks_are_contiguous(out.shape, concat_dim)) {
        transport_->all_to_all(axes, blocks, out.data, block_bytes);
    } else {
        std::byte* received = staging.data() + in.bytes();
        transport_->all_to_all(axes, blocks, received, block_bytes);
        unpack_blocks(received, concat_dim, me.n, out);
    }
}

void Groups::all_to_all_v(const AxisList& axes, std::span<const std::int64_t> send_rows,
                          std::span<const std::int64_t> receive_rows, const ConstView& in, const View& out) {
    constexpr CollectiveKind kind = CollectiveKind::all_to_all_v;
    const Member me = enter(axes, {kind, in.dtype, in.count()});
    expect_dim(kind, 0, in.shape);
    Shape expected = in.shape;
    expected[0] = out.shape.empty() ? 0 : out.shape[0];
    expect_output(kind, in, out, expected);
    expect_rows(send_rows, me.n, in.shape[0], "sent");
    expect_rows(receive_rows, me.n, out.shape[0], "received");
    const auto own = static_cast<std::size_t>(me.position);
    if (send_rows[own] != receive_rows[own]) {
        fail(kind, "{} rows go to their own rank, which expects {}", send_rows[own], receive_rows[own]);
    }
    const std::int64_t row_bytes = in.shape[0] == 0 ? 0 : in.bytes() / in.shape[0];
    if (me.n == 1 && send_rows[0] > 0) {
        std::memcpy(out.data, in.data, static_cast<std::size_t>(send_rows[0] * row_bytes));
    }
    if (me.n == 1 || row_bytes == 0) {
        return;
    }
    if (row_bytes > std::numeric_limits<std::int32_t>::max()) {
        fail(kind, "rows of {} bytes are too long", row_bytes);
    }
    if (Window* shared = window(kind, axes, 0)) {  // the members' sizes differ, their choice must not
        window_all_to_all_rows(*shared, in.data, send_rows, out.data, receive_rows, row_bytes);
    } else {
        transport_->all_to_all_rows(axes, in.data, send_rows, out.data, receive_rows, row_bytes);
    }
    const std::int64_t rows = std::accumulate(send_rows.begin(), send_rows.end(), std::int64_t{0});
    sent(kind, (rows - send_rows[own]) * row_bytes);
}

void Groups::permute(const AxisList& axes, std::int64_t source, std::span<const std::int64_t> destinations,
                     const ConstView& in, const View& out) {
    constexpr CollectiveKind kind = CollectiveKind::permute;
    const Member me = enter(axes, {kind, in.dtype, in.count()});
    expect_output(kind, in, out, in.shape);
    std::vector<std::int64_t> others;
    for (const std::int64_t position : destinations) {
        if (position < 0 || position >= me.n) {
            fail(kind, "destination {} in a group of {}", position, me.n);
        }
        if (position != me.position) {
            others.push_back(position);
        }
    }
    if (source < 0 || source >= me.n) {
        fail(kind, "source {} in a group of {}", source, me.n);
    }
    const bool own = source == me.position;
    if (own != (others.size() < destinations.size())) {
        fail(kind, "position {} takes the block of {}, but its destinations say otherwise", me.position, source);
    }
    if (own) {
        copy_whole(in, out);
    }
    if (me.n > 1 && in.bytes() > 0) {
        const std::int64_t taken = own ? -1 : source;
        if (Window* shared = window(kind, axes, in.bytes())) {
            window_permute(*shared, taken, !others.empty(), in.data, out.data, in.bytes());
        } else {
            transport_->exchange(axes, taken, others, in.data, out.data, in.bytes());
        }
        sent(kind, std::ssize(others) * in.bytes());
    }
}

void Groups::send(const AxisList& axes, std::int64_t position, const ConstView& data) {
    const std::int64_t destination = other_member(axes, position, data);
    transport_->exchange(axes, -1, std::span(&destination, 1), data.data, nullptr, data.bytes());
    sent(CollectiveKind::send, data.bytes());
}

void Groups::receive(const AxisList& axes, std::int64_t position, const View& data) {
    transport_->exchange(axes, other_member(axes, position, data), {}, nullptr, data.data, data.bytes());
}

/// Counts the call; throws unless `position` is another member.
std::int64_t Groups::other_member(const AxisList& axes, std::int64_t position, const ConstView& data) {
    const std::int64_t n = mesh_.size(axes);
    if (position < 0 || position >= n || position == mesh_.position(rank_, axes)) {
        fail(CollectiveKind::send, "position {} in a group of {}, seen from {}", position, n,
             mesh_.position(rank_, axes));
    }
    Traffic& traffic = traffic_[static_cast<std::size_t>(CollectiveKind::send)];
    traffic.calls += 1;
    traffic.payload_bytes += data.bytes();
    return position;
}

void Groups::slice(const AxisList& axes, int dim, const ConstView& in, const View& out) {
    constexpr CollectiveKind kind = CollectiveKind::slice;
    const Member me = enter(axes, {kind, in.dtype, in.count(), dim});
    expect_dim(kind, dim, in.shape);
    expect_output(kind, in, out, divided(kind, in.shape, dim, me.n));
    const std::int64_t size = out.shape[static_cast<std::size_t>(dim)];
    pack_block(in, dim, {me.position * size, (me.position + 1) * size}, out.data);
}

}  // namespace shardplan::comm
