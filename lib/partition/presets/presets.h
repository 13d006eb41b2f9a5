// The parameter rules of two EasyDeL releases as data, one table per Hugging Face model type. The tables are facts of
// those releases, dead rules included; rules.cpp turns them into RuleTables. Regenerate with scripts/generate_presets.
#pragma once

#include <span>
#include <string_view>

namespace shardplan::partition::presets {

struct Rule {
    std::string_view pattern;
    std::string_view spec;  ///< one word per dimension: axes joined by commas, or "-" for None; "" is P()
};

struct Table {
    std::string_view model_type;
    std::span<const Rule> rules;
};

/// One function per generated file; each sorted by model type, named by the first letters of its model types.
std::span<const Table> seed_0_0_80_a_to_z();
std::span<const Table> easydel_0_2_a_to_g();
std::span<const Table> easydel_0_2_h_to_z();

}  // namespace shardplan::partition::presets
