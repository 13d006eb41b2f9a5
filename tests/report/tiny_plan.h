// A hand-made Plan: 4 layers, mesh dp=2, tp=4 with tp split as (2, 2); every field that reports show is set.
#pragma once

#include "plan/plan.h"

namespace report_tests {

shardplan::plan::Plan tiny_plan();

/// A plan of nothing but one stored tensor, for drawings.
shardplan::plan::Plan plan_of_tensor(const std::vector<shardplan::mesh::Axis>& axes,
                                     const shardplan::tensor::Shape& shape,
                                     const shardplan::partition::PartitionSpec& spec);

}  // namespace report_tests
