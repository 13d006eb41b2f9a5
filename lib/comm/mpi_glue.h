// Between the sources of this room that speak MPI; without mpi.h, so communicators appear as the integer handles of
// MPI_Comm_c2f.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/transport.h"
#include "mesh/mesh.h"

namespace shardplan::comm {

/// Throws std::runtime_error "<function>: <MPI's text>" unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* function);

struct WindowOptions {
    std::int64_t half_bytes = 0;
    std::int64_t shared_memory_limit = 0;  ///< of all windows of a group together
    bool oversubscribed = false;           ///< more ranks than cores: waits must let others run at once
};

/// A Window with its memory.
class SharedWindow {
public:
    SharedWindow() = default;
    SharedWindow(const SharedWindow&) = delete;
    SharedWindow& operator=(const SharedWindow&) = delete;
    /// Collective over the group, unless an exception is on its way: then the others need not come.
    virtual ~SharedWindow() = default;
    virtual Window& window() = 0;
};

/// Collective over `communicator`; nullptr on all its ranks, and report.refused, if they cannot share memory.
/// Fills in `report` but for its axes. `communicator` must outlive the result.
std::unique_ptr<SharedWindow> make_mpi_window(int communicator, const WindowOptions& options, WindowReport& report);

/// Groups of the ranks of communicator `parent`, rank i = device i. `parent` must outlive it.
std::unique_ptr<Transport> make_mpi_transport(int parent, const mesh::Mesh& mesh, std::int64_t rank,
                                              std::int64_t max_call_bytes, const WindowOptions& windows);

}  // namespace shardplan::comm
