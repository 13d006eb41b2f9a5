// Which files `validate` checks: those that are named, and the jobs below directories.
#pragma once

#include <string>
#include <vector>

#include "report/findings.h"

namespace shardplan::app {

struct UnreadableDirectory {
    std::string name;
    std::string reason;
};

struct JobFiles {
    std::vector<std::string> jobs;  ///< each once; named ones in their order, those of a directory sorted
    std::vector<report::SkippedFile> skipped;
    std::vector<UnreadableDirectory> unreadable;
};

/// A directory stands for every *.json below it that looks like a job (config::kind_of), and with `bare_models` (a mesh
/// on the command line) also for the configs of models; the rest is skipped. Hidden directories are not entered,
/// symbolic links to directories not followed.
JobFiles find_jobs(const std::vector<std::string>& names, bool bare_models);

}  // namespace shardplan::app
