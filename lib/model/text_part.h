// Names of a text decoder within a checkpoint of text and pictures or speech: they have a prefix, which checkpoints of
// the decoder alone leave out. Knows the prefixes and the names of the other parts,
// and under which key such a config holds the decoder.
#pragma once

#include <string_view>

#include "model/config_value.h"
#include "model/model_spec.h"

namespace shardplan::model {

/// "text_config", ... when the decoder's fields stand in an object of their own under that key, else "".
std::string_view text_part_key(const ConfigValue& config);

/// Puts the prefix that checkpoints of `outer_type` (model_type of the whole) have before every name of the decoder,
/// and lets the tensors of the other parts be ignored. Nothing is changed where the family has done so already.
void use_text_part_names(ModelSpec& model, std::string_view outer_type);

}  // namespace shardplan::model
