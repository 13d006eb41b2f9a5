#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "comm/mpi_glue.h"

namespace shardplan::comm {

namespace {

constexpr double far_nanoseconds = 150.0;  // seen: about 50 with a common cache, 200 to 330 without

/// True on all ranks of `comm` if `ok` is true on all.
bool agreed(MPI_Comm comm, bool ok) {
    int value = ok ? 1 : 0;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    return value == 1;
}

int size_of_comm(MPI_Comm comm) {
    int size = 0;
    check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    return size;
}

bool on_one_host(MPI_Comm comm) {
    MPI_Comm local = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local), "MPI_Comm_split_type");
    const int size = size_of_comm(local);
    check_mpi(MPI_Comm_free(&local), "MPI_Comm_free");
    return agreed(comm, size == size_of_comm(comm));
}

/// Bytes that shared memory has left. Touching a page of it that does not fit ends a process.
std::int64_t room_for_windows() {
    struct statvfs file_system {};
    if (::statvfs("/dev/shm", &file_system) != 0) {
        return 0;
    }
    return static_cast<std::int64_t>(file_system.f_bavail) * static_cast<std::int64_t>(file_system.f_frsize);
}

/// Makes the pages exist now; false where there is no room for them. Systems that cannot say (Linux before 5.14) have
/// only the look at the room to rely on.
bool populate(std::byte* begin, std::int64_t bytes) {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which the C library's headers may lack
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    std::byte* first = begin - address % page;
    const auto length = address % page + static_cast<std::uintptr_t>(bytes);
    return ::madvise(first, length, populate_write) == 0 || errno == EINVAL;
}

class MpiSharedWindow final : public SharedWindow {
public:
    MpiSharedWindow(MPI_Comm comm, std::int64_t half_bytes)
        : comm_(comm), half_bytes_(half_bytes), exceptions_(std::uncaught_exceptions()) {}

    ~MpiSharedWindow() override {
        if (win_ == MPI_WIN_NULL || std::uncaught_exceptions() != exceptions_) {
            return;
        }
        if (locked_) {
            MPI_Win_unlock_all(win_);
        }
        MPI_Win_free(&win_);
    }

    /// False on all ranks if it failed on one.
    bool allocate() {
        const std::int64_t segment_bytes = Window::segment_bytes(half_bytes_);
        MPI_Info info = MPI_INFO_NULL;
        check_mpi(MPI_Info_create(&info), "MPI_Info_create");
        check_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
        void* own = nullptr;
        const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(segment_bytes), 1, info, comm_, &own, &win_);
        MPI_Info_free(&info);
        if (!agreed(comm_, code == MPI_SUCCESS)) {
            win_ = MPI_WIN_NULL;  // if it exists here, not everywhere: cannot be freed
            return false;
        }
        auto* begin = static_cast<std::byte*>(own);
        if (!agreed(comm_, populate(begin, segment_bytes))) {
            return false;
        }
        check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, win_), "MPI_Win_lock_all");
        locked_ = true;
        std::memset(begin, 0, static_cast<std::size_t>(segment_bytes));
        check_mpi(MPI_Win_sync(win_), "MPI_Win_sync");
        check_mpi(MPI_Barrier(comm_), "MPI_Barrier");
        return true;
    }

    void open(const WindowOptions& options, WindowReport& report) {
        std::vector<std::byte*> segments;
        for (int p = 0; p < size_of_comm(comm_); ++p) {
            MPI_Aint size = 0;
            int unit = 0;
            void* base = nullptr;
            check_mpi(MPI_Win_shared_query(win_, p, &size, &unit, &base), "MPI_Win_shared_query");
            segments.push_back(static_cast<std::byte*>(base));
        }
        int rank = 0;
        check_mpi(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
        window_ = std::make_unique<Window>(segments, rank, half_bytes_, options.oversubscribed);
        if (!options.oversubscribed) {
            report.latency = window_->measure_latency();
            check_mpi(MPI_Bcast(&report.latency, 1, MPI_DOUBLE, 0, comm_), "MPI_Bcast");
            window_->set_stores(report.latency > far_nanoseconds ? Stores::streaming : Stores::plain);
        }
        report.stores = window_->stores();
    }

    Window& window() override { return *window_; }

private:
    MPI_Comm comm_;
    std::int64_t half_bytes_;
    int exceptions_;
    MPI_Win win_ = MPI_WIN_NULL;
    bool locked_ = false;
    std::unique_ptr<Window> window_;
};

}  // namespace

std::unique_ptr<SharedWindow> make_mpi_window(int communicator, const WindowOptions& options, WindowReport& report) {
    MPI_Comm comm = MPI_Comm_f2c(communicator);
    report.members = size_of_comm(comm);
    if (!on_one_host(comm)) {
        report.refused = "its ranks are on several hosts";
        return nullptr;
    }
    // A margin for what others, MPI itself among them, take in the meantime.
    constexpr std::int64_t margin = std::int64_t{4} << 20;
    const std::int64_t half = std::max(options.half_bytes, Window::least_half_bytes(report.members));
    const std::int64_t segment = Window::segment_bytes(half);
    const std::int64_t needed = segment * report.members;
    const std::int64_t room = std::min(room_for_windows() - margin, options.shared_memory_limit);
    auto shared = std::make_unique<MpiSharedWindow>(comm, half);
    if (!agreed(comm, needed <= room) || !shared->allocate()) {
        report.refused = fmt::format("no room for {} bytes of shared memory in /dev/shm", needed);
        return nullptr;
    }
    shared->open(options, report);
    report.bytes = segment;
    return shared;
}

}  // namespace shardplan::comm
