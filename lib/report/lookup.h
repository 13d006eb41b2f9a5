// Finds tensors of a plan by what people type: a checkpoint name with or without the layer's number, the folded name,
// the end of a name, or components of it ("q_proj"); activations by their name in a block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace shardplan::report {

/// A stored tensor or an activation, with what is needed to show it.
struct TensorRef {
    std::string name;
    tensor::Shape shape;
    tensor::DType dtype = tensor::DType::bf16;
    partition::Layout layout;
    std::vector<std::size_t> stages = {};  ///< of a pipeline that hold it; without a pipeline none are listed
    friend bool operator==(const TensorRef&, const TensorRef&) = default;
};

struct Lookup {
    std::vector<TensorRef> matches;  ///< exact matches, else those of the end, else those of components
    std::string hint;                ///< the nearest name when nothing matches; may be empty
};

Lookup find_tensors(const plan::Plan& plan, std::string_view query);

}  // namespace shardplan::report
