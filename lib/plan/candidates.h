// The admissible compute layouts of an op: assignments of mesh axes to the op's factors. Only assignments that some
// operand's present layout, or the layout asked of the output, suggests are tried: any other would only add reshards.
#pragma once

#include <vector>

#include "model/op_rule.h"
#include "partition/layout.h"

namespace shardplan::plan {

struct Candidate {
    std::vector<mesh::AxisList> factor_axes;  ///< per factor
    mesh::AxisSet passed_pending;             ///< sums that stay pending from inputs to output (linear ops only)
    /// Experts only; not empty: tokens are sent to the devices that hold their experts. The axes that cut the weights'
    /// experts dimension then, among them some that cut the tokens.
    mesh::AxisList expert_axes = {};
};

/// A layout that one operand has or will have, with the factors of its dimensions.
struct SourceLayout {
    const std::vector<model::DimFactor>* dims = nullptr;
    partition::Layout layout;
};

/// `passable`: axes over which all inputs of a linear op may stay pending.
std::vector<Candidate> enumerate_candidates(const model::OpRule& rule, const std::vector<SourceLayout>& sources,
                                            mesh::AxisSet passable, const mesh::Mesh& mesh);

/// Layout of an operand under a candidate; `shape` is the operand's.
partition::Layout operand_layout(const std::vector<model::DimFactor>& dims, const Candidate& candidate,
                                 const tensor::Shape& shape, const mesh::Mesh& mesh);

/// Axes on contracting factors: the output is pending over them.
mesh::AxisSet contracted_axes(const model::OpRule& rule, const Candidate& candidate);

/// Axes on the statistical factor, in order.
mesh::AxisList statistical_axes(const model::OpRule& rule, const Candidate& candidate);

/// Product of the local sizes of all factors.
double local_work(const model::OpRule& rule, const Candidate& candidate, const mesh::Mesh& mesh);

/// Floating-point operations of each device, a multiply-add counted as two.
double local_flops(const model::OpRule& rule, const Candidate& candidate, const mesh::Mesh& mesh);

}  // namespace shardplan::plan
