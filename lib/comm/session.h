// The life of MPI in a process, and what can be known of the launcher before it starts.
#pragma once

#include <string>

namespace shardplan::comm {

/// Initialises MPI (MPI_THREAD_FUNNELED) and finalises it at the end of its scope; one per process, outside every
/// World. When its scope is left by an exception MPI is not finalised: the launcher then ends the other ranks, which
/// might wait for this one.
/// Open MPI waits by spinning; with more ranks than cores set OMPI_MCA_mpi_yield_when_idle=1 so that waiting ranks let
/// the others run (they still look busy).
class Session {
public:
    Session(int& argc, char**& argv);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Ends all ranks with this exit code.
    [[noreturn]] static void abort(int code);

private:
    int exceptions_ = 0;
};

/// Whether this process was started by mpirun, mpiexec or srun, from the environment only.
bool launched_by_mpirun();

/// First line of the library's own description, e.g. "Open MPI v4.1.4"; works without a Session.
std::string mpi_version();

}  // namespace shardplan::comm
