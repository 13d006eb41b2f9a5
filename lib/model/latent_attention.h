// Builds multi-head latent attention into a layer (DeepSeek-V2, arXiv 2405.04434, section 2.1): a token's keys and
// values are linear in one latent, of which a decode step needs only the cache. Two forms of the decode step: keys and
// values of all heads made of the cached latents, or (absorbed) attention to the latents themselves, the matrices
// multiplied to the queries and the outputs instead. Knows nothing of norms and residuals around the attention.
#pragma once

#include "model/block_builder.h"

namespace shardplan::model {

/// x [b,s,e] -> the heads' outputs [b,s,h*v], role attention_merged: the input of the output projection.
/// @pre model.attention.is_latent(); `absorb` only in decode
TensorId build_latent_attention(BlockBuilder& block, TensorId x, const ModelSpec& model, bool absorb);

}  // namespace shardplan::model
