// What the process ends with. The same table stands in --help and in the README.
#pragma once

namespace shardplan::app {

enum class ExitCode : int {
    fine = 0,
    findings = 1,  ///< invalid, infeasible, mismatch, differs
    failure = 2,   ///< could not do the job: usage, unreadable file, syntax
    internal = 3,  ///< a fault of shardplan
    interrupted = 130,
};

constexpr int value_of(ExitCode code) {
    return static_cast<int>(code);
}

}  // namespace shardplan::app
