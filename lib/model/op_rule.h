// Op rules: the factors of each op, as an einsum names them ("b s i, o i -> b s o"). Lowering asks only for the rule,
// so any placement works with any op (the idea of Shardy's sharding rules and of DTensor's op strategies).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/graph.h"

namespace shardplan::model {

enum class FactorKind : std::uint8_t {
    parallel,     ///< each index is computed independently
    contracting,  ///< summed over: sharding it leaves a pending sum in the output
    statistical,  ///< normalised over (norm, softmax): sharding it needs an extra all-reduce of statistics
    whole,        ///< must not be sharded
};

struct Factor {
    std::string_view name;
    std::int64_t size = 0;
    FactorKind kind = FactorKind::parallel;
};

/// Which factor a dimension of an operand is.
struct DimFactor {
    int factor = 0;
    /// The dimension holds fewer elements than the factor (kv heads against query heads): it takes the longest leading
    /// part of the factor's axes whose size divides the dimension.
    bool shared_prefix = false;
};

struct OpRule {
    std::vector<Factor> factors;
    std::vector<std::vector<DimFactor>> inputs;  ///< per input, per dimension
    std::vector<DimFactor> output;
    bool linear = false;    ///< pending sums of the inputs may pass through (add, scale, split and merge of heads)
    int factor_input = -1;  ///< of a linear op: the input that the others are multiplied by; its sums must be finished

    /// Multiply-adds: each term is `count` times the product of the sizes of its factors.
    struct Term {
        double count = 1.0;
        std::vector<int> factors;
    };
    std::vector<Term> multiply_adds;

    /// May a sum stay pending in input `i` while the op is computed?
    bool passes(std::size_t i) const { return linear && static_cast<int>(i) != factor_input; }
};

/// @pre the op's tensors exist in the block.
OpRule rule_of(const Op& op, const Block& block);

}  // namespace shardplan::model
