// Builds the MLPs of a layer into its block: dense ones and mixtures of experts. Knows nothing of norms and residuals.
#pragma once

#include "model/block_builder.h"

namespace shardplan::model {

/// The last linear of the dense MLP: its bias is added by the caller, after the partial sums are reduced.
LinearSpec down_projection(const ModelSpec& model);

/// x [b,s,e] -> [b,s,e], role partial_hidden, without the bias of down_projection.
TensorId build_mlp(BlockBuilder& block, TensorId x, const ModelSpec& model);

/// The same with the experts of model.moe, the shared one included.
/// @pre model.moe.experts > 0
TensorId build_moe(BlockBuilder& block, TensorId x, const ModelSpec& model);

}  // namespace shardplan::model
