// A plan for people: mesh, provider and why, stored tensors, the steps of one layer of each kind, collectives, memory
// per device, diagnostics. Written piece by piece; time grows with the number of different layers, not of devices.
#pragma once

#include <iosfwd>
#include <vector>

#include "diag/diagnostic.h"
#include "plan/plan.h"
#include "report/diagnostics_text.h"
#include "report/style.h"

namespace shardplan::report {

struct PlanTextOptions {
    bool reasons = true;  ///< the section that says which field or rule decided each spec
    bool steps = true;
};

void write_plan_text(std::ostream& out, const plan::Plan& plan, const std::vector<diag::Diagnostic>& diagnostics,
                     const Sources& sources, const Style& style, const PlanTextOptions& options = {});

}  // namespace shardplan::report
