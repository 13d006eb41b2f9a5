// A RunSummary as text and as JSON: predicted and counted side by side, "equal" or "DIFFER".
#pragma once

#include <iosfwd>

#include "report/run_summary.h"
#include "report/style.h"

namespace shardplan::report {

void write_run_text(std::ostream& out, const RunSummary& run, const Style& style);

/// One document with schema_version; "passed" is the verdict.
void write_run_json(std::ostream& out, const RunSummary& run);

}  // namespace shardplan::report
