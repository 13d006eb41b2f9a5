// What Groups needs from a message-passing library: moving bytes between the members of a group. Knows neither dtypes
// nor dimensions. Every function is collective over the caller's group along `axes`; buffers must not overlap.
// Groups of one rank never reach a transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/interval.h"
#include "comm/window.h"
#include "mesh/mesh.h"

namespace shardplan::comm {

/// How a group that was asked for a window got one, or not.
struct WindowReport {
    mesh::AxisList axes;
    std::int64_t members = 0;
    std::int64_t bytes = 0;  ///< of shared memory that this rank adds; 0: no window
    double latency = 0.0;    ///< Window::measure_latency; 0 when there are more ranks than cores
    Stores stores = Stores::plain;
    std::string refused;  ///< why there is no window
};

/// One line for a report of a run, "" when no group was asked for a window: how much shared memory this rank adds, how
/// far the cores are apart, or why there is none.
std::string describe(std::span<const WindowReport> windows);

class Transport {
public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// Block p of `send` goes to position p; the block of position p arrives as block p of `received`.
    virtual void all_to_all(const mesh::AxisList& axes, const std::byte* send, std::byte* received,
                            std::int64_t block_bytes) = 0;

    /// The block of position p arrives as block p of `received`.
    virtual void all_gather(const mesh::AxisList& axes, const std::byte* send, std::byte* received,
                            std::int64_t block_bytes) = 0;

    /// Bytes chunks[p] of `data` go to position p; the copies of the own chunk arrive one behind the other.
    virtual void scatter_chunks(const mesh::AxisList& axes, const std::byte* data,
                                std::span<const base::Interval> chunks, std::byte* received) = 0;

    /// Position p contributes bytes chunks[p] of its `data`; all of it is complete everywhere afterwards.
    virtual void gather_chunks(const mesh::AxisList& axes, std::byte* data, std::span<const base::Interval> chunks) = 0;

    /// send_rows[p] rows of `row_bytes` go to position p, taken one position behind the other; receive_rows[p] rows
    /// from position p arrive in the same way. @pre every count and every total < 2^31, row_bytes < 2^31
    virtual void all_to_all_rows(const mesh::AxisList& axes, const std::byte* send,
                                 std::span<const std::int64_t> send_rows, std::byte* received,
                                 std::span<const std::int64_t> receive_rows, std::int64_t row_bytes) = 0;

    /// Receives `bytes` from position `source` and sends as many to each of `destinations`; neither names the caller.
    /// source < 0: receives nothing.
    virtual void exchange(const mesh::AxisList& axes, std::int64_t source, std::span<const std::int64_t> destinations,
                          const std::byte* send, std::byte* received, std::int64_t bytes) = 0;

    /// Memory that all members share, made at the first call; nullptr where there is none. The same on all members.
    virtual Window* window(const mesh::AxisList& axes) = 0;

    /// Of the groups that were asked for one so far. Local.
    virtual std::vector<WindowReport> windows() const = 0;
};

}  // namespace shardplan::comm
