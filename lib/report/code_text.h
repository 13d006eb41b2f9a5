// One row of the table of diagnostic codes, as `validate --explain CODE` shows it.
#pragma once

#include <iosfwd>

#include "diag/codes.h"
#include "report/style.h"

namespace shardplan::report {

void write_code_text(std::ostream& out, const diag::CodeInfo& info, const Style& style);

/// {schema_version, code, severity, title, explanation}
void write_code_json(std::ostream& out, const diag::CodeInfo& info);

}  // namespace shardplan::report
