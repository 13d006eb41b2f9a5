// Reads a job: model, mesh, partitioning, backend, workload and options, from one JSON document and the overrides of
// the command line. A bare Hugging Face config is a job too when the mesh comes from the command line. Every problem is
// reported at once and with its place; a job is returned only when there is none. It checks shape, types, ranges and
// names; whether the job can be planned is for the plan room to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/overrides.h"
#include "plan/job.h"

namespace shardplan::config {

struct JobSource {
    std::string name;       ///< shown in places
    std::string text;       ///< JSON
    std::string directory;  ///< paths in the job are relative to it; "" = the current directory
};

/// Reads the file `path`, the config.json of the directory `path`, or standard input for "-". SP1001, SP1009.
std::optional<JobSource> open_job(const std::string& path, diag::Diagnostics& diagnostics,
                                  const std::string& stdin_name = "<stdin>");

/// Errors: SP1002 ... SP1009 (the document), SP2xxx (the model), SP3xxx (the mesh), SP6002 (overrides.layers).
/// `documents`, when given, receives the job's document with the overrides applied (for attach_spans of what later
/// passes find) and after it that of the model's file.
std::optional<plan::Job> read_job(const JobSource& source, const Overrides& overrides, diag::Diagnostics& diagnostics,
                                  std::vector<Document>* documents = nullptr);

}  // namespace shardplan::config
