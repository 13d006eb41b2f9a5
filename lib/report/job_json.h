// The resolved job within the JSON of a plan: everything the plan follows from, defaults filled in. The text of the job
// file (its order, its places, its comments) leaves no trace, so equal jobs give equal bytes.
#pragma once

#include "plan/job.h"
#include "report/json_writer.h"

namespace shardplan::report {

/// The field "job".
void write_job_json(JsonWriter& json, const plan::Job& job);

/// The field `key` with {axes: [{name, size}], devices}.
void write_mesh_json(JsonWriter& json, std::string_view key, const mesh::Mesh& mesh);

}  // namespace shardplan::report
