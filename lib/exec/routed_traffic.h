// What the all-to-all dispatcher must have sent, from the routing of the unsharded model: which experts each token
// chose in each layer. Independent of how tokens are packed and counted on the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "tensor/view.h"

namespace shardplan::exec {

/// The experts that the tokens of an unsharded run chose, by layer.
class RoutingLog {
public:
    /// routing [b, s, X] f32: the weights of the experts, 0 if not chosen.
    void add(int layer, const tensor::ConstView& routing);
    bool empty() const { return chosen_.empty(); }
    /// Does the token at `position` of sequence b use an expert of [first, first + count) in this layer?
    bool uses(int layer, std::int64_t b, std::int64_t position, std::int64_t first, std::int64_t count) const;

private:
    struct Layer {
        tensor::Shape shape;
        std::vector<bool> chosen;
    };
    std::map<int, Layer> chosen_;
};

/// Wire bytes of all exchanges of rows (all_to_all_v), all ranks together, of the steps whose first tokens stand at
/// `positions`, in every sequence alike.
std::int64_t routed_bytes(const plan::Plan& plan, const RoutingLog& log, std::span<const std::int64_t> positions);

}  // namespace shardplan::exec
