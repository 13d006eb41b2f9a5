// Findings as SARIF 2.1.0 (OASIS), for code scanning. The rules are the table of diagnostic codes. File names are
// relative and percent-encoded, columns count code points, and fingerprints are made of code and JSON pointer, so that
// a finding keeps its identity when lines move.
#pragma once

#include <iosfwd>
#include <string_view>

#include "report/findings.h"

namespace shardplan::report {

void write_check_sarif(std::ostream& out, const CheckReport& report, std::string_view tool_version);

}  // namespace shardplan::report
