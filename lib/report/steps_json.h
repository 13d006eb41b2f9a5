// The blocks of a plan as JSON: values, steps and weight uses of one layer of each kind.
#pragma once

#include "plan/plan.h"
#include "report/json_writer.h"

namespace shardplan::report {

/// The field "layers": one object per block.
void write_blocks_json(JsonWriter& json, const plan::Plan& plan);

/// The field "axes": per dimension the list of mesh axes.
void write_spec_axes_json(JsonWriter& json, const partition::PartitionSpec& spec);

}  // namespace shardplan::report
