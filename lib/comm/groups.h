// Collectives between the groups of ranks along axes of a mesh, as one rank sees them. A group along `axes` is the
// ranks that differ only in their coordinates on `axes`, in order of mesh::Mesh::position (axes[0] most significant).
// Every member must make the same calls in the same order. Sums are combined in order of position and are therefore
// identical on all members and from run to run; bf16 sums accumulate in f32 and round once.
// Scratch memory is the caller's: `staging` holds at least mesh::staging_bytes(...) bytes, aligned for the dtype.
// in, out and staging must not overlap. Broken preconditions and failures of the library throw std::runtime_error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "comm/ordered_reduce.h"
#include "comm/transport.h"
#include "mesh/collective.h"
#include "mesh/mesh.h"
#include "tensor/view.h"

namespace shardplan::comm {

/// What this rank did with one kind of collective in groups of more than one rank.
struct Traffic {
    std::int64_t calls = 0;
    std::int64_t payload_bytes = 0;  ///< input bytes
    std::int64_t wire_bytes = 0;     ///< sent to other ranks; the sum over a group is mesh::group_wire_bytes
    friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline constexpr std::size_t collective_kinds = static_cast<std::size_t>(mesh::CollectiveKind::slice) + 1;
/// Indexed by mesh::CollectiveKind.
using TrafficTable = std::array<Traffic, collective_kinds>;

/// How the bytes of a collective travel; results are the same to the bit. Between hosts always by MPI.
enum class TransportChoice : std::uint8_t {
    automatic,  ///< the faster one for the kind and the size, as far as the ranks can share memory
    mpi,
    shared,  ///< through shared memory; throws where a group has none
};

struct GroupOptions {
    /// Before each collective, compare kind, dtype, element count and dimensions between the members and throw on all
    /// of them when they differ: MPI itself mixes up the data or waits for ever.
    bool check_calls = false;
    /// Longest message (counts of MPI 3 are int); longer ones are split. @pre 8 <= max_call_bytes <= 2^30
    std::int64_t max_call_bytes = std::int64_t{1} << 30;

    TransportChoice transport = TransportChoice::automatic;
    /// Of the shared memory of each rank and group, of which there are two halves: longer data go in pieces.
    /// @pre a positive multiple of 64
    std::int64_t window_half_bytes = std::int64_t{1} << 19;
    /// What the windows of one group may take of it together, beside the room that the system has.
    std::int64_t shared_memory_limit = std::numeric_limits<std::int64_t>::max();

    /// check_calls from SHARDPLAN_CHECK_COLLECTIVES (set, not empty and not "0"), transport from SHARDPLAN_TRANSPORT
    /// (auto, mpi, shared; throws std::runtime_error for anything else).
    static GroupOptions from_environment();
};

class Groups {
public:
    /// `transport` may be null when the mesh has a single device.
    Groups(const mesh::Mesh& mesh, std::int64_t rank, const GroupOptions& options,
           std::unique_ptr<Transport> transport);

    const mesh::Mesh& mesh() const { return mesh_; }
    std::int64_t rank() const { return rank_; }

    /// out.shape[dim] = n * in.shape[dim]: the inputs of all members in order of position.
    void all_gather(const mesh::AxisList& axes, int dim, const tensor::ConstView& in, const tensor::View& out,
                    std::span<std::byte> staging);

    /// n * out.shape[dim] = in.shape[dim]: the sum of all inputs, of which each member keeps the block of its position.
    void reduce_scatter(const mesh::AxisList& axes, int dim, const tensor::ConstView& in, const tensor::View& out,
                        std::span<std::byte> staging);

    /// Reduce-scatter of `partial` along dim into `reduced`, then between(): local work that reads `reduced` and fills
    /// `source`; then all-gather of `source` along dim into `out`. Staging and traffic are those of the two
    /// collectives.
    void reduce_scatter_gather(const mesh::AxisList& axes, int dim, const tensor::ConstView& partial,
                               const tensor::View& reduced, const std::function<void()>& between,
                               const tensor::ConstView& source, const tensor::View& out, std::span<std::byte> staging);

    /// In place. f32, bf16, f64.
    void all_reduce(const mesh::AxisList& axes, const tensor::View& data, std::span<std::byte> staging);
    /// In place. f32, bf16, f64, i32, i64; NaN wins.
    void all_reduce_max(const mesh::AxisList& axes, const tensor::View& data, std::span<std::byte> staging);

    /// Cuts split_dim into n blocks, block p for position p, and concatenates what arrives along concat_dim in order of
    /// position: out.shape = in.shape with split_dim / n, then concat_dim * n (both may be the same dimension).
    void all_to_all(const mesh::AxisList& axes, int split_dim, int concat_dim, const tensor::ConstView& in,
                    const tensor::View& out, std::span<std::byte> staging);

    /// Rows (blocks of the first dimension) one position behind the other: send_rows[p] of `in` go to position p,
    /// receive_rows[p] of position p arrive in `out`; rows beyond the totals are not touched. What the members pass
    /// must fit: receive_rows[p] here = send_rows[own position] at p.
    void all_to_all_v(const mesh::AxisList& axes, std::span<const std::int64_t> send_rows,
                      std::span<const std::int64_t> receive_rows, const tensor::ConstView& in, const tensor::View& out);

    /// out = the whole input of position `source`; `destinations` are the positions whose source is this rank, itself
    /// included when source is its own position.
    void permute(const mesh::AxisList& axes, std::int64_t source, std::span<const std::int64_t> destinations,
                 const tensor::ConstView& in, const tensor::View& out);

    /// Gives `data` to the member at `position` of the group along `axes`, or takes it from there; the other one makes
    /// the call that fits. Between two members only: no other takes part. Two members' sends arrive in order.
    void send(const mesh::AxisList& axes, std::int64_t position, const tensor::ConstView& data);
    void receive(const mesh::AxisList& axes, std::int64_t position, const tensor::View& data);

    /// Local: out = the block of the own position, n * out.shape[dim] = in.shape[dim].
    void slice(const mesh::AxisList& axes, int dim, const tensor::ConstView& in, const tensor::View& out);

    /// The shared memory of the groups used so far. Local.
    std::vector<WindowReport> windows() const;

    const TrafficTable& traffic() const { return traffic_; }
    const Traffic& traffic(mesh::CollectiveKind kind) const { return traffic_[static_cast<std::size_t>(kind)]; }
    void reset_traffic() { traffic_ = {}; }

private:
    struct Member {
        std::int64_t n = 1;
        std::int64_t position = 0;
    };
    struct Call;

    Member enter(const mesh::AxisList& axes, const Call& call);
    void compare_calls(const mesh::AxisList& axes, const Call& call, std::int64_t n);
    void reduce_in_place(Reduction reduction, const mesh::AxisList& axes, const tensor::View& data,
                         std::span<std::byte> staging);
    void reduce_segment(Reduction reduction, const mesh::AxisList& axes, Member me, const tensor::View& segment,
                        std::byte* staging);
    std::int64_t other_member(const mesh::AxisList& axes, std::int64_t position, const tensor::ConstView& data);
    /// Through which the collective goes; nullptr: as messages. The same on all members if `bytes` are.
    Window* window(mesh::CollectiveKind kind, const mesh::AxisList& axes, std::int64_t bytes);
    void sent(mesh::CollectiveKind kind, std::int64_t bytes);

    mesh::Mesh mesh_;
    std::int64_t rank_ = 0;
    GroupOptions options_;
    std::unique_ptr<Transport> transport_;
    TrafficTable traffic_{};
};

}  // namespace shardplan::comm
