// Findings as workflow commands of GitHub Actions, which show them at the lines of a pull request.
#pragma once

#include <iosfwd>

#include "report/findings.h"

namespace shardplan::report {

/// One line each: "::error file=F,line=L,endLine=L,col=C,endColumn=E,title=CODE title::message"; the hint follows the
/// message on a line of its own (%0A).
void write_check_github(std::ostream& out, const CheckReport& report);

}  // namespace shardplan::report
