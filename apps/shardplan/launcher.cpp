#include "launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <vector>

#include "console.h"
#include "exec/cores.h"

namespace shardplan::app {
namespace {

/// The ranks cannot see the terminal: --color and --ascii as decided here, before a "--" that would end the options.
void add_looks(std::vector<std::string>& words, const Arguments& arguments) {
    const report::Style output = style_for(arguments, Stream::output);
    const report::Style error = style_for(arguments, Stream::error);
    std::vector<std::string> looks = {"--color", output.colour && error.colour ? "always" : "never"};
    if (output.ascii || error.ascii) {
        looks.emplace_back("--ascii");
    }
    words.insert(std::find(words.begin(), words.end(), "--"), looks.begin(), looks.end());
}

/// Each rank is bound to cores of its own, as many as it has threads, where they suffice. Who has chosen a binding for
/// Open MPI keeps it.
void add_placement(std::vector<std::string>& words, std::int64_t ranks, std::int64_t threads) {
    const exec::RankCores own = exec::own_cores();
    const std::int64_t cores = std::ssize(own.cores);
    if (ranks > cores) {
        words.insert(words.end(), {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
        setenv("OMP_WAIT_POLICY", "passive", 0);
        return;
    }
    if (std::getenv("OMPI_MCA_hwloc_base_binding_policy") != nullptr) {
        return;
    }
    const std::int64_t each = threads > 0 ? threads : cores / ranks;
    if (ranks == 1 || each > cores / ranks) {
        words.insert(words.end(), {"--bind-to", "none"});
        return;
    }
    words.insert(words.end(), {"--use-hwthread-cpus", "--map-by", fmt::format("slot:PE={}", each), "--bind-to",
                               "hwthread:if-supported"});
}

}  // namespace

std::string mpirun_line(const Arguments& arguments, std::int64_t ranks) {
    return fmt::format("mpirun -n {} {} run {}", ranks, arguments.program, arguments.job);
}

ExitCode launch_mpirun(const Arguments& arguments, std::int64_t ranks, int argc, char** argv) {
    constexpr std::int64_t most_ranks = 4096;
    if (ranks > most_ranks) {
        throw UsageError(fmt::format("the mesh has {} devices; shardplan starts at most {} ranks on one host by itself",
                                     ranks, most_ranks));
    }
    if (geteuid() == 0 && std::getenv("OMPI_ALLOW_RUN_AS_ROOT") == nullptr) {
        throw UsageError(
            "mpirun refuses to run as root: use another user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    std::vector<std::string> words = {"mpirun", "-q", "-n", std::to_string(ranks)};
    add_placement(words, ranks, arguments.threads);
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    std::vector<std::string> options(argv + 1, argv + argc);
    add_looks(options, arguments);
    words.insert(words.end(), options.begin(), options.end());
    if (style_for(arguments, Stream::error).colour && shows_progress()) {
        setenv(progress_variable, "1", 1);
    }
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    execvp(pointers.front(), pointers.data());
    throw UsageError(fmt::format("cannot start mpirun: {}", std::strerror(errno)));
}

}  // namespace shardplan::app
