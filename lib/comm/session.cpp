#include "comm/session.h"

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "comm/mpi_glue.h"

namespace shardplan::comm {

void check_mpi(int code, const char* function) {
    if (code == MPI_SUCCESS) {
        return;
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw std::runtime_error(std::string(function) + ": " + std::string(text.data(), static_cast<std::size_t>(length)));
}

Session::Session(int& argc, char**& argv) : exceptions_(std::uncaught_exceptions()) {
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED) {
        throw std::runtime_error("this MPI cannot be used by a process with threads (MPI_THREAD_FUNNELED)");
    }
}

Session::~Session() {
    if (std::uncaught_exceptions() == exceptions_) {
        MPI_Finalize();
    }
}

void Session::abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);  // MPI_Abort is not declared noreturn
}

bool launched_by_mpirun() {
    const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
    // A Slurm batch script has SLURM_PROCID too; the number of tasks of a step is set by srun only.
    return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || is_set("PMI_RANK") ||
           (is_set("SLURM_PROCID") && is_set("SLURM_STEP_NUM_TASKS"));
}

std::string mpi_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    const std::string_view whole(text.data());
    return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

}  // namespace shardplan::comm
