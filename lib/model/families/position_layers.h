// Layers without positions: no_rope_layers of smollm3 and llama4.
#pragma once

#include "model/field_reader.h"
#include "model/model_spec.h"

namespace shardplan::model {

/// no_rope_layers holds 1 where positions are used (transformers' naming notwithstanding); when it is absent or empty,
/// every no_rope_layer_interval-th layer (4 by default) has none. SP2003 for a list of another length.
void read_position_layers(FieldReader& fields, ModelSpec& model);

}  // namespace shardplan::model
