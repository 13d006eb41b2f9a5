// How tokens reach the experts of other devices. The all-gather dispatcher needs nothing of its own: an experts op
// whose experts are cut takes all tokens and leaves a sum, as any contraction. The all-to-all dispatcher is this file:
// further candidates of the op in which one mesh axis cuts tokens and experts at once, and their steps. Its sizes
// depend on the data. Buffers have room for the worst routing, in which one device holds experts of all tokens; wire
// bytes are those of balanced experts: each token goes to min(top_k, devices) devices, all of them alike.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "model/op_rule.h"
#include "plan/block_builder.h"
#include "plan/scored.h"

namespace shardplan::plan {

class Dispatch {
public:
    /// For one op of kind experts; all arguments must outlive it.
    Dispatch(int op_index, const LoweringContext& context, BlockBuilder& builder, const model::OpRule& rule);

    /// Adds the placements in which tokens are sent; or none, as the job says.
    void add_candidates(std::vector<Candidate>& candidates) const;
    /// Of input i: the experts dimension of the weights where tokens are sent.
    partition::Layout input_layout(std::size_t i, const Candidate& candidate, partition::Layout layout) const;
    void add_cost(const Candidate& candidate, Scored& scored) const;

    /// Remembers the cheapest placement of each dispatcher.
    void note(const Scored& scored);
    /// Enters the choice and its reason into the plan.
    void record(const Scored& best) const;

    /// @pre best.candidate.expert_axes is not empty. Returns the op's output.
    ValueId emit(const std::vector<ValueId>& inputs, const Scored& best, const std::string& module);

private:
    struct Sizes;
    struct Rows;

    Sizes sizes_of(const Candidate& candidate) const;
    mesh::AxisList group_of(const Candidate& candidate) const;
    bool can_send(const Candidate& candidate) const;
    mesh::AxisSet token_axes(const Candidate& candidate) const;
    std::string reason(const Scored& best) const;
    Rows emit_rows(const std::vector<ValueId>& inputs, const Sizes& sizes);
    ValueId exchange(ValueId rows, const char* name, std::int64_t room, ValueId sent, ValueId received,
                     const Sizes& sizes);

    int op_index_;
    const LoweringContext& context_;
    BlockBuilder& builder_;
    const model::Op& op_;
    const model::OpRule& rule_;
    const mesh::Mesh& mesh_;
    int batch_, sequence_, experts_;  ///< factors
    mesh::AxisList stored_;           ///< axes of the experts dimension of the stored weights
    double sent_ = std::numeric_limits<double>::infinity();
    double gathered_ = std::numeric_limits<double>::infinity();
};

}  // namespace shardplan::plan
