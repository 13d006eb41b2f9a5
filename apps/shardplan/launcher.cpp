#include "launcher.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <vector>

#include "comm/cores.h"
#include "console.h"

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

/// Each rank is bound to cores of its own, as many as it has threads, where they suffice; else all cores get equally
/// many ranks, where that comes out even. Who has chosen a binding for Open MPI keeps it.
void add_placement(std::vector<std::string>& words, std::int64_t ranks, std::int64_t threads) {
    const comm::RankCores own = comm::own_cores();
    const std::int64_t cores = std::ssize(own.cores);
    const bool chosen = std::getenv("OMPI_MCA_hwloc_base_binding_policy") != nullptr;
    if (ranks > cores) {
        words.insert(words.end(), {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
        setenv("OMP_WAIT_POLICY", "passive", 0);
        // Left to itself the system may give one core more ranks than another, as ranks that wait look busy.
        if (!chosen && ranks % cores == 0) {
            words.insert(words.end(), {"--use-hwthread-cpus", "--map-by", "hwthread:oversubscribe", "--bind-to",
                                       "hwthread:overload-allowed:if-supported"});
        }
        return;
    }
    if (chosen) {
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

volatile std::sig_atomic_t stopped_by = 0;
volatile std::sig_atomic_t mpirun_process = 0;

/// A terminal tells mpirun itself; what another process sends to this one only is handed on.
void stop_mpirun(int signal, siginfo_t* info, void* /*context*/) {
    stopped_by = signal;
    if (info->si_code <= 0 && mpirun_process > 0) {
        kill(mpirun_process, signal);
    }
}

void hand_on_signals() {
    struct sigaction action {};
    action.sa_sigaction = stop_mpirun;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaction(signal, &action, nullptr);
    }
}

/// What mpirun ends with is what the ranks end with, but for signals.
ExitCode exit_code_of(int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (stopped_by != 0 || code == value_of(ExitCode::interrupted)) {
        return ExitCode::interrupted;
    }
    return code < 128 ? static_cast<ExitCode>(code) : ExitCode::internal;
}

ExitCode run_and_wait(const std::vector<char*>& words) {
    const pid_t self = getpid();
    hand_on_signals();
    const pid_t child = fork();
    if (child < 0) {
        throw UsageError(fmt::format("cannot start mpirun: {}", std::strerror(errno)));
    }
    if (child == 0) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            std::signal(signal, SIG_DFL);
        }
        prctl(PR_SET_PDEATHSIG, SIGTERM);  // no ranks are left behind when this process is killed
        if (getppid() == self) {
            execvp(words.front(), words.data());
            fmt::print(stderr, "shardplan: cannot start mpirun: {}\n", std::strerror(errno));
        }
        _exit(value_of(ExitCode::failure));
    }
    mpirun_process = child;
    if (stopped_by != 0) {  // before there was anyone to tell
        kill(child, stopped_by);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return exit_code_of(status);
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
    return run_and_wait(pointers);
}

}  // namespace shardplan::app
