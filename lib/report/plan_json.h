// A plan as JSON (schema_version), streamed: time and memory do not grow with devices. Two equal plans give equal
// bytes. Fields: schema_version, job, mesh, provider, tensors[], activations[], layers[] (values[], steps[],
// weight_uses[], dispatches[]), sequence[], collectives[], totals, memory.per_device, notes[], diagnostics[].
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "plan/plan.h"

namespace shardplan::report {

void write_plan_json(std::ostream& out, const plan::Plan& plan, const std::vector<diag::Diagnostic>& diagnostics);

/// FNV-1a over the JSON without diagnostics: what ranks compare before they execute a plan.
std::uint64_t plan_hash(const plan::Plan& plan);

/// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace shardplan::report
