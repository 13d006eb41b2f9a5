// Reads rope_theta, rope_scaling and rope_parameters (the later form of both) of a config.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/field_reader.h"
#include "model/rope.h"

namespace shardplan::model {

struct RopeDefaults {
    double theta = 10000.0;
    std::int64_t max_positions = 2048;
    bool scaled = true;  ///< false: rope_scaling does not apply (local layers of gemma3 and olmo3)
    /// The entry of rope_parameters that counts when they are given per layer type.
    std::string_view layer_type = "full_attention";
};

/// `rotary_dim` must be even: SP2003. Unknown kinds of scaling: SP1008.
RopeSpec read_rope(FieldReader& fields, std::int64_t rotary_dim, const RopeDefaults& defaults);

}  // namespace shardplan::model
