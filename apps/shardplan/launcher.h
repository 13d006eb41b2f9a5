// Starts mpirun for `shardplan run` when it was not started by mpirun itself.
#pragma once

#include <cstdint>
#include <string>

#include "arguments.h"
#include "exit_code.h"

namespace shardplan::app {

/// "mpirun -n 4 shardplan run JOB": the line to type.
std::string mpirun_line(const Arguments& arguments, std::int64_t ranks);

/// Runs mpirun with `ranks` copies of the same command, and the looks that this process, which sees the real terminal,
/// has chosen; returns what it ends with. SIGINT, SIGTERM and SIGHUP reach mpirun, which ends the ranks: interrupted. A
/// rank that died of a signal of its own is an internal error. Nothing is left running when this process is killed.
/// Ranks are bound to cores of their own; more ranks than cores are oversubscribed, and told to yield while they wait.
/// As root, mpirun refuses unless OMPI_ALLOW_RUN_AS_ROOT and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM are set; the program does
/// not set them itself.
ExitCode launch_mpirun(const Arguments& arguments, std::int64_t ranks, int argc, char** argv);

}  // namespace shardplan::app
