// Names, shapes and layouts of a plan's tensors as text, shared by all reports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace shardplan::report {

/// "[1,512,4096]": shapes without blanks, for narrow columns.
std::string shape_text(const tensor::Shape& shape);

/// Checkpoint name with its layers folded and its part: "model.layers.{0..31}.self_attn.qkv_proj.weight [q]".
std::string stored_name(const plan::StoredTensor& tensor);

/// Names of the pending axes, whole or parts ("tp:(1)8").
std::vector<std::string> pending_names(const plan::Plan& plan, const partition::Layout& layout);

/// "P('dp',None)" and, for partial sums, " partial over tp"; printable.
std::string layout_text(const plan::Plan& plan, const partition::Layout& layout);

/// "dp=2, tp=4 (8 devices)"; printable
std::string mesh_text(const mesh::Mesh& mesh);

const plan::Value& value_of(const plan::BlockPlan& block, plan::ValueId id);

/// Values of a block that are inputs: token ids, hidden from the block before.
std::vector<plan::ValueId> inputs_of(const plan::BlockPlan& block);

/// How often the sequence runs each block.
std::vector<std::int64_t> uses_of_blocks(const plan::Plan& plan);

}  // namespace shardplan::report
