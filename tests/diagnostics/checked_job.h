// Reads a job and checks it as `shardplan validate` does, and plans it as `shardplan plan` does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/job_reader.h"
#include "diagnostics/table.h"
#include "plan/checks/check_job.h"
#include "plan/plan.h"

namespace diagnostics_tests {

using namespace shardplan;

struct CheckedJob {
    std::optional<plan::Job> job;
    diag::Diagnostics checked;          ///< of reading and check_job, with places
    std::optional<plan::Plan> planned;  ///< of make_plan
    diag::Diagnostics planning;         ///< of reading and make_plan
};

inline CheckedJob check_text(const std::string& text, const std::string& name, const config::Overrides& overrides = {},
                             bool also_plan = true) {
    CheckedJob result;
    const std::string directory = std::filesystem::path(name).parent_path().string();
    std::vector<config::Document> documents;
    result.job = config::read_job({name, text, directory}, overrides, result.checked, &documents);
    result.planning = result.checked;
    if (result.job) {
        plan::check_job(*result.job, result.checked);
        if (also_plan) {
            result.planned = plan::make_plan(*result.job, result.planning);
        }
    }
    if (!documents.empty()) {
        config::attach_spans(result.checked, documents.front());
    }
    return result;
}

inline CheckedJob check_file(const std::string& path) {
    return check_text(read_text(path), path);
}

/// A bare model on a mesh.
inline CheckedJob check_on(const std::string& path, const std::string& mesh, std::vector<std::string> set = {},
                           bool also_plan = true) {
    return check_text(read_text(path), path, {.mesh = mesh, .set = std::move(set)}, also_plan);
}

/// All messages, for failures.
inline std::string text_of(const diag::Diagnostics& diagnostics) {
    std::string text;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        const int line = d.span ? d.span->line : 0;
        const int column = d.span ? d.span->column : 0;
        text += "\n  " + std::to_string(line) + ":" + std::to_string(column) + " " +
                std::string(diag::to_string(d.severity)) + " " + d.code + " " + d.message + " | " + d.hint;
    }
    return text;
}

}  // namespace diagnostics_tests
