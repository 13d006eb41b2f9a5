#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "comm/mpi_glue.h"

namespace shardplan::comm {

using base::Interval;
using mesh::AxisList;

namespace {

/// `length` bytes at the beginning of blocks of `block_bytes`: a count of n covers the same piece of n blocks, however
/// far apart, without the int displacements of the "v" collectives.
class StridedPiece {
public:
    StridedPiece(std::int64_t length, std::int64_t block_bytes) {
        MPI_Datatype run = MPI_DATATYPE_NULL;
        check_mpi(MPI_Type_contiguous(static_cast<int>(length), MPI_BYTE, &run), "MPI_Type_contiguous");
        const int code = MPI_Type_create_resized(run, 0, static_cast<MPI_Aint>(block_bytes), &type_);
        MPI_Type_free(&run);
        check_mpi(code, "MPI_Type_create_resized");
        check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    }
    ~StridedPiece() { MPI_Type_free(&type_); }
    StridedPiece(const StridedPiece&) = delete;
    StridedPiece& operator=(const StridedPiece&) = delete;
    MPI_Datatype type() const { return type_; }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// Counts and displacements of chunks, as the "v" collectives want them. @pre chunks end below 2^31
struct Layout {
    explicit Layout(std::span<const Interval> chunks) {
        for (const Interval& chunk : chunks) {
            counts.push_back(static_cast<int>(chunk.size()));
            offsets.push_back(static_cast<int>(chunk.begin));
        }
    }
    std::vector<int> counts;
    std::vector<int> offsets;
};

std::vector<Interval> one_behind_the_other(std::span<const std::int64_t> sizes) {
    std::vector<Interval> chunks;
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
        chunks.push_back({end, end + size});
        end += size;
    }
    return chunks;
}

class MpiTransport final : public Transport {
public:
    MpiTransport(MPI_Comm parent, const mesh::Mesh& mesh, std::int64_t rank, std::int64_t max_call_bytes,
                 const WindowOptions& options)
        : parent_(parent), mesh_(mesh), rank_(rank), max_call_bytes_(max_call_bytes), window_options_(options) {}

    ~MpiTransport() override {
        // Freeing a window waits for its other members: all ranks must come to their windows in one order.
        std::sort(windows_.begin(), windows_.end(), [](const GroupWindow& a, const GroupWindow& b) {
            return names(a.report.axes) < names(b.report.axes);
        });
        for (GroupWindow& entry : windows_) {
            entry.shared.reset();
        }
        for (auto& entry : comms_) {
            MPI_Comm_free(&entry.second);
        }
    }

    void all_to_all(const AxisList& axes, const std::byte* send, std::byte* received,
                    std::int64_t block_bytes) override {
        MPI_Comm comm = comm_of(axes);
        for (std::int64_t offset = 0; offset < block_bytes; offset += max_call_bytes_) {
            const StridedPiece piece(std::min(max_call_bytes_, block_bytes - offset), block_bytes);
            check_mpi(MPI_Alltoall(send + offset, 1, piece.type(), received + offset, 1, piece.type(), comm),
                      "MPI_Alltoall");
        }
    }

    void all_gather(const AxisList& axes, const std::byte* send, std::byte* received,
                    std::int64_t block_bytes) override {
        MPI_Comm comm = comm_of(axes);
        for (std::int64_t offset = 0; offset < block_bytes; offset += max_call_bytes_) {
            const StridedPiece piece(std::min(max_call_bytes_, block_bytes - offset), block_bytes);
            check_mpi(MPI_Allgather(send + offset, 1, piece.type(), received + offset, 1, piece.type(), comm),
                      "MPI_Allgather");
        }
    }

    void scatter_chunks(const AxisList& axes, const std::byte* data, std::span<const Interval> chunks,
                        std::byte* received) override {
        const Layout sent(chunks);
        const std::int64_t own = chunks[static_cast<std::size_t>(mesh_.position(rank_, axes))].size();
        std::vector<Interval> copies;
        for (std::int64_t p = 0; p < std::ssize(chunks); ++p) {
            copies.push_back({p * own, (p + 1) * own});
        }
        const Layout arriving(copies);
        check_mpi(MPI_Alltoallv(data, sent.counts.data(), sent.offsets.data(), MPI_BYTE, received,
                                arriving.counts.data(), arriving.offsets.data(), MPI_BYTE, comm_of(axes)),
                  "MPI_Alltoallv");
    }

    void gather_chunks(const AxisList& axes, std::byte* data, std::span<const Interval> chunks) override {
        const Layout layout(chunks);
        check_mpi(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, layout.counts.data(), layout.offsets.data(),
                                 MPI_BYTE, comm_of(axes)),
                  "MPI_Allgatherv");
    }

    void all_to_all_rows(const AxisList& axes, const std::byte* send, std::span<const std::int64_t> send_rows,
                         std::byte* received, std::span<const std::int64_t> receive_rows,
                         std::int64_t row_bytes) override {
        const StridedPiece row(row_bytes, row_bytes);
        const Layout sent(one_behind_the_other(send_rows));
        const Layout arriving(one_behind_the_other(receive_rows));
        check_mpi(MPI_Alltoallv(send, sent.counts.data(), sent.offsets.data(), row.type(), received,
                                arriving.counts.data(), arriving.offsets.data(), row.type(), comm_of(axes)),
                  "MPI_Alltoallv");
    }

    void exchange(const AxisList& axes, std::int64_t source, std::span<const std::int64_t> destinations,
                  const std::byte* send, std::byte* received, std::int64_t bytes) override {
        MPI_Comm comm = comm_of(axes);
        std::vector<MPI_Request> requests;
        for (std::int64_t offset = 0; offset < bytes; offset += max_call_bytes_) {
            const auto size = static_cast<int>(std::min(max_call_bytes_, bytes - offset));
            if (source >= 0) {
                check_mpi(MPI_Irecv(received + offset, size, MPI_BYTE, static_cast<int>(source), 0, comm,
                                    &requests.emplace_back()),
                          "MPI_Irecv");
            }
            for (const std::int64_t destination : destinations) {
                check_mpi(MPI_Isend(send + offset, size, MPI_BYTE, static_cast<int>(destination), 0, comm,
                                    &requests.emplace_back()),
                          "MPI_Isend");
            }
        }
        check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    Window* window(const AxisList& axes) override {
        auto known = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const GroupWindow& entry) { return entry.report.axes == axes; });
        if (known == windows_.end()) {
            GroupWindow made;
            made.report.axes = axes;
            made.shared = make_mpi_window(MPI_Comm_c2f(comm_of(axes)), window_options_, made.report);
            known = windows_.insert(windows_.end(), std::move(made));
        }
        return known->shared ? &known->shared->window() : nullptr;
    }

    std::vector<WindowReport> windows() const override {
        std::vector<WindowReport> reports;
        for (const GroupWindow& entry : windows_) {
            reports.push_back(entry.report);
        }
        return reports;
    }

private:
    struct GroupWindow {
        WindowReport report;
        std::unique_ptr<SharedWindow> shared;
    };

    static std::vector<int> names(const AxisList& axes) {
        std::vector<int> ids;
        for (int i = 0; i < axes.size(); ++i) {
            ids.push_back(mesh::index_of(axes[i]));
        }
        return ids;
    }

    /// Created on first use by the members alone, so that groups need not be first used in the same order everywhere.
    MPI_Comm comm_of(const AxisList& axes) {
        const auto known =
            std::find_if(comms_.begin(), comms_.end(), [&](const auto& entry) { return entry.first == axes; });
        if (known != comms_.end()) {
            return known->second;
        }
        std::vector<int> ranks;
        for (const std::int64_t member : mesh_.group(rank_, axes)) {
            ranks.push_back(static_cast<int>(member));
        }
        return comms_.emplace_back(axes, create(ranks)).second;
    }

    MPI_Comm create(const std::vector<int>& ranks) const {
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Group members = MPI_GROUP_NULL;
        check_mpi(MPI_Comm_group(parent_, &all), "MPI_Comm_group");
        check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &members), "MPI_Group_incl");
        MPI_Comm comm = MPI_COMM_NULL;
        check_mpi(MPI_Comm_create_group(parent_, members, 0, &comm), "MPI_Comm_create_group");
        MPI_Group_free(&members);
        MPI_Group_free(&all);
        check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        return comm;
    }

    MPI_Comm parent_;
    mesh::Mesh mesh_;
    std::int64_t rank_;
    std::int64_t max_call_bytes_;
    WindowOptions window_options_;
    std::vector<std::pair<AxisList, MPI_Comm>> comms_;
    std::vector<GroupWindow> windows_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(int parent, const mesh::Mesh& mesh, std::int64_t rank,
                                              std::int64_t max_call_bytes, const WindowOptions& windows) {
    return std::make_unique<MpiTransport>(MPI_Comm_f2c(parent), mesh, rank, max_call_bytes, windows);
}

}  // namespace shardplan::comm
