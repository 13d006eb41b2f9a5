// What the executor needs in every use of a block, looked up once: where parameters and caches of the layer are, and
// the views of values with their shapes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "exec/buffer.h"
#include "exec/parameter_store.h"
#include "exec/schedule.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

namespace shardplan::exec {

struct UseTable {
    std::vector<std::pair<plan::ValueId, std::byte*>> stored;   ///< parameters and caches
    std::vector<std::vector<const kernels::Weight*>> prepared;  ///< per step and part of its linear
};

/// caches: per stored tensor, per instance.
UseTable make_use_table(const plan::Plan& plan, const Schedule& schedule, const ParameterStore& parameters,
                        const std::vector<std::vector<Buffer>>& caches, const model::BlockUse& use);

/// Per value; without data.
std::vector<tensor::View> views_of(const plan::BlockPlan& block);

}  // namespace shardplan::exec
