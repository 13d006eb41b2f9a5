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

/// Groups of the ranks of communicator `parent`, rank i = device i. `parent` must outlive it.
std::unique_ptr<Transport> make_mpi_transport(int parent, const mesh::Mesh& mesh, std::int64_t rank,
                                              std::int64_t max_call_bytes);

}  // namespace shardplan::comm
