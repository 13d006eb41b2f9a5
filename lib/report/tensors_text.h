// The tensors a plan stores (parameters and caches), as a table with identical layers folded, and why each is cut so.
#pragma once

#include <iosfwd>

#include "plan/plan.h"
#include "report/style.h"

namespace shardplan::report {

/// A name with folded layers stands as a heading, "model.layers.{0..31}", above the rest of the names.
struct NameParts {
    std::string heading;  ///< "" for tensors outside of layers
    std::string rest;
};
NameParts split_name(const plan::StoredTensor& tensor);

void write_tensors_text(std::ostream& out, const plan::Plan& plan, const Style& style);

/// Tensors with the same reason share a line.
void write_reasons_text(std::ostream& out, const plan::Plan& plan, const Style& style);

}  // namespace shardplan::report
