#include <mpi.h>

#include <algorithm>
#include <vector>

#include "comm/communicator.h"
#include "comm/cores.h"
#include "comm/mpi_glue.h"

namespace shardplan::comm {

namespace {

constexpr std::size_t max_message_bytes = std::size_t{1} << 30;  // counts are int

/// Calls piece(offset, size) for consecutive pieces that fit one message.
template <typename Piece>
void in_pieces(std::size_t bytes, Piece piece) {
    for (std::size_t offset = 0; offset < bytes; offset += max_message_bytes) {
        piece(offset, static_cast<int>(std::min(max_message_bytes, bytes - offset)));
    }
}

class MpiWorld final : public World {
public:
    MpiWorld() {
        check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
        check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        MPI_Comm local = MPI_COMM_NULL;
        check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local),
                  "MPI_Comm_split_type");
        check_mpi(MPI_Comm_rank(local, &local_rank_), "MPI_Comm_rank");
        check_mpi(MPI_Comm_size(local, &local_size_), "MPI_Comm_size");
        check_mpi(MPI_Comm_free(&local), "MPI_Comm_free");
    }
    ~MpiWorld() override { MPI_Comm_free(&comm_); }

    std::int64_t rank() const override { return rank_; }
    std::int64_t size() const override { return size_; }
    std::int64_t local_rank() const override { return local_rank_; }
    std::int64_t local_size() const override { return local_size_; }

    void barrier() override { check_mpi(MPI_Barrier(comm_), "MPI_Barrier"); }

    void broadcast(std::string& bytes) override {
        std::uint64_t length = bytes.size();
        check_mpi(MPI_Bcast(&length, 1, MPI_UINT64_T, 0, comm_), "MPI_Bcast");
        bytes.resize(length);
        in_pieces(length, [&](std::size_t offset, int size) {
            check_mpi(MPI_Bcast(bytes.data() + offset, size, MPI_BYTE, 0, comm_), "MPI_Bcast");
        });
    }

    std::vector<std::string> gather(const std::string& bytes) override {
        std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
        const std::uint64_t length = bytes.size();
        check_mpi(MPI_Gather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, 0, comm_), "MPI_Gather");
        if (rank_ != 0) {
            in_pieces(length, [&](std::size_t offset, int size) {
                check_mpi(MPI_Send(bytes.data() + offset, size, MPI_BYTE, 0, 0, comm_), "MPI_Send");
            });
            return {};
        }
        std::vector<std::string> all{bytes};
        for (int source = 1; source < size_; ++source) {
            std::string& text = all.emplace_back(lengths[static_cast<std::size_t>(source)], '\0');
            in_pieces(text.size(), [&](std::size_t offset, int size) {
                check_mpi(MPI_Recv(text.data() + offset, size, MPI_BYTE, source, 0, comm_, MPI_STATUS_IGNORE),
                          "MPI_Recv");
            });
        }
        return all;
    }

protected:
    void all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
        const auto size = static_cast<int>(own.size());
        check_mpi(MPI_Allgather(own.data(), size, MPI_BYTE, all.data(), size, MPI_BYTE, comm_), "MPI_Allgather");
    }

    std::unique_ptr<Transport> transport(const mesh::Mesh& mesh, const GroupOptions& options) override {
        const std::vector<std::int64_t> threads(static_cast<std::size_t>(size_), 1);
        const bool crowded = oversubscribed(gather_cores(*this), threads);
        return make_mpi_transport(MPI_Comm_c2f(comm_), mesh, rank_, options.max_call_bytes,
                                  {options.window_half_bytes, options.shared_memory_limit, crowded});
    }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    int local_rank_ = 0;
    int local_size_ = 1;
};

}  // namespace

std::unique_ptr<World> make_mpi_world() {
    return std::make_unique<MpiWorld>();
}

}  // namespace shardplan::comm
