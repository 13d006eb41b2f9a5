// Findings as JUnit XML: one suite, one test case per file, which fails when one of its findings does. Findings that do
// not fail are its output. Readers allow one failure per case, so that it lists all.
#pragma once

#include <iosfwd>

#include "report/findings.h"

namespace shardplan::report {

void write_check_junit(std::ostream& out, const CheckReport& report);

}  // namespace shardplan::report
