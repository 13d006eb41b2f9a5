// Kinds of models that are known but not supported, so that the message can say what the model is.
#pragma once

#include <string_view>

#include "model/config_value.h"

namespace shardplan::model {

/// "mixture of experts", "encoder-decoder", ...; empty when the type is unknown.
std::string_view unsupported_kind(std::string_view model_type);

/// The kind that the fields show whatever the type says (experts, latent attention, per-layer shapes); empty if none.
/// Experts and latent attention do not count where the family knows of them. `key` becomes the telling field.
std::string_view unsupported_fields(const ConfigValue& config, bool experts_known, bool latent_known,
                                    std::string_view& key);

}  // namespace shardplan::model
