// Inverse frequencies of rotary positions with the scalings of Hugging Face configs: default, linear, dynamic (NTK),
// yarn (Peng et al. 2023), llama3 and longrope (Ding et al. 2024), in float32 as the published models were trained.
// It knows no config; rope_fields.h reads the parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model_spec.h"

namespace shardplan::model {

enum class RopeScalingType : std::uint8_t { none, linear, dynamic, yarn, llama3, longrope };

struct RopeScaling {
    RopeScalingType type = RopeScalingType::none;
    double factor = 1.0;
    std::int64_t original_positions = 0;     ///< trained length
    std::optional<double> attention_factor;  ///< yarn, longrope: stated instead of computed
    std::optional<double> mscale, mscale_all_dim;
    double beta_fast = 32.0, beta_slow = 1.0;  ///< yarn: rotations within the trained length
    bool truncate = true;                      ///< yarn: correction range rounded to whole dimensions
    double low_frequency_factor = 1.0, high_frequency_factor = 4.0;  ///< llama3
    std::vector<double> short_factors, long_factors;                 ///< longrope: one per frequency
};

/// @pre rotary_dim is even and positive, theta > 0; longrope: rotary_dim / 2 factors each.
RopeSpec make_rope(std::int64_t rotary_dim, double theta, const RopeScaling& scaling);

/// The rope with the frequencies for sequences of `positions` positions (longrope, dynamic); others unchanged.
RopeSpec rope_for_positions(const RopeSpec& rope, std::int64_t positions);

}  // namespace shardplan::model
