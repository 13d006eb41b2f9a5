#include "job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "arguments.h"
#include "config/file.h"
#include "config/json_kind.h"

namespace shardplan::app {
namespace {

namespace fs = std::filesystem;

/// Every *.json below `directory`; directories that cannot be read do not keep the others from being searched.
void collect(const fs::path& directory, std::vector<std::string>& files, std::vector<UnreadableDirectory>& unreadable) {
    std::vector<fs::path> below;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        const fs::path& path = entry->path();
        std::error_code ignored;
        if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
            if (!path.filename().string().starts_with('.')) {
                below.push_back(path);
            }
        } else if (path.extension() == ".json" && entry->is_regular_file(ignored)) {
            files.push_back(path.lexically_normal().string());
        }
    }
    if (error) {
        unreadable.push_back({directory.lexically_normal().string(), error.message()});
    }
    for (const fs::path& path : below) {
        collect(path, files, unreadable);
    }
}

/// Sorted.
std::vector<std::string> json_files(const std::string& directory, std::vector<UnreadableDirectory>& unreadable) {
    std::vector<std::string> files;
    collect(directory, files, unreadable);
    std::sort(files.begin(), files.end());
    return files;
}

/// Why a file of a directory is skipped; "" when it is checked. One that cannot be read is checked, to be reported.
std::string reason_to_skip(const std::string& file, bool bare_models) {
    constexpr std::size_t longest = std::size_t{16} << 20;
    diag::Diagnostics ignored;
    const auto text = config::read_file(file, longest, ignored);
    if (!text) {
        return ignored.all().front().code == "SP1009" ? "larger than any job" : "";
    }
    switch (config::kind_of(*text)) {
        case config::JsonKind::job: return "";
        case config::JsonKind::model: return bare_models ? "" : "the config of a model; give --mesh to check it";
        case config::JsonKind::other: break;
    }
    return "not a job";
}

}  // namespace

JobFiles find_jobs(const std::vector<std::string>& names, bool bare_models) {
    JobFiles found;
    std::set<std::string> seen;
    const auto take = [&](const std::string& name) {
        if (seen.insert(fs::path(name).lexically_normal().string()).second) {
            found.jobs.push_back(name);
        }
    };
    for (const std::string& name : names) {
        std::error_code ignored;
        if (name == "-" || !fs::is_directory(name, ignored)) {
            take(name);
            continue;
        }
        for (const std::string& file : json_files(name, found.unreadable)) {
            const std::string reason = reason_to_skip(file, bare_models);
            if (reason.empty()) {
                take(file);
            } else {
                found.skipped.push_back({file, reason});
            }
        }
    }
    return found;
}

}  // namespace shardplan::app
