// The JSON Schema (draft-07) of a job, for editors and for checks without this program. It states the shape: keys,
// types, ranges and names, as the reader has them; whether a job of that shape can be planned it cannot say.
#pragma once

#include <string>

namespace shardplan::config {

/// The schema as JSON, two blanks per level, with a line end; the same bytes in every run.
std::string job_schema();

}  // namespace shardplan::config
