#include "model/rope_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace shardplan::model {
namespace {

/// "mrope" and "gptj" say how positions are given or laid out, not how frequencies are scaled.
constexpr auto scaling_names = std::to_array<std::pair<std::string_view, RopeScalingType>>({
    {"default", RopeScalingType::none},
    {"dynamic", RopeScalingType::dynamic},
    {"gptj", RopeScalingType::none},
    {"linear", RopeScalingType::linear},
    {"llama3", RopeScalingType::llama3},
    {"longrope", RopeScalingType::longrope},
    {"mrope", RopeScalingType::none},
    {"su", RopeScalingType::longrope},
    {"yarn", RopeScalingType::yarn},
});

RopeScalingType read_type(FieldReader& fields) {
    const std::string name = fields.word_or({"rope_type", "type"}, "default");
    const auto it =
        std::find_if(scaling_names.begin(), scaling_names.end(), [&](const auto& row) { return row.first == name; });
    if (it != scaling_names.end()) {
        return it->second;
    }
    fields.report("SP1008", {"rope_type", "type"}, fmt::format("rope scaling \"{}\" is not known", name),
                  "known: default, linear, dynamic, yarn, llama3, longrope");
    return RopeScalingType::none;
}

double required_factor(FieldReader& fields, FieldReader::Keys keys) {
    if (fields.find(keys) == nullptr) {
        fields.missing(keys);
        return 1.0;
    }
    return fields.positive_or(keys, 1.0);
}

void read_longrope(FieldReader& fields, RopeScaling& scaling, std::int64_t rotary_dim, double stretch) {
    const auto count = static_cast<std::size_t>(rotary_dim / 2);
    for (auto& [key, factors] :
         {std::pair{"short_factor", &scaling.short_factors}, std::pair{"long_factor", &scaling.long_factors}}) {
        if (fields.find({key}) == nullptr) {
            fields.missing({key});
        }
        *factors = fields.numbers({key}, count);
    }
    fields.positive_or({"factor"}, stretch);  // the stretch decides; checkpoints have the factor beside it
    scaling.factor = stretch;
}

/// `outer` holds original_max_position_embeddings of phi3, which stands beside rope_scaling.
RopeScaling read_scaling(FieldReader& fields, FieldReader& outer, std::int64_t rotary_dim, std::int64_t max_positions) {
    RopeScaling scaling;
    scaling.type = read_type(fields);
    const auto inner_original = fields.optional_size({"original_max_position_embeddings"});
    const auto original = inner_original ? inner_original : outer.optional_size({"original_max_position_embeddings"});
    scaling.original_positions = original.value_or(max_positions);
    const double stretch = static_cast<double>(max_positions) / static_cast<double>(scaling.original_positions);
    switch (scaling.type) {
        case RopeScalingType::none: return scaling;
        case RopeScalingType::longrope: read_longrope(fields, scaling, rotary_dim, stretch); break;
        case RopeScalingType::yarn:
            if (stretch == 1.0 && fields.find({"factor"}) == nullptr) {
                fields.missing({"factor"});
            }
            scaling.factor = fields.positive_or({"factor"}, stretch);
            break;
        case RopeScalingType::dynamic: scaling.original_positions = max_positions; [[fallthrough]];
        default: scaling.factor = required_factor(fields, {"factor"}); break;
    }
    if (scaling.type == RopeScalingType::llama3) {
        scaling.low_frequency_factor = required_factor(fields, {"low_freq_factor"});
        scaling.high_frequency_factor = required_factor(fields, {"high_freq_factor"});
        if (fields.ok() && scaling.high_frequency_factor < scaling.low_frequency_factor) {
            fields.report("SP2003", {"high_freq_factor"}, "high_freq_factor must not be less than low_freq_factor");
        }
    }
    scaling.attention_factor = fields.optional_number({"attention_factor"}, 0.0, 1e6);
    scaling.mscale = fields.optional_number({"mscale"}, 0.0, 1e6);
    scaling.mscale_all_dim = fields.optional_number({"mscale_all_dim"}, 0.0, 1e6);
    if (scaling.mscale == 0.0 || scaling.mscale_all_dim == 0.0) {
        scaling.mscale.reset();
    }
    scaling.beta_fast = fields.positive_or({"beta_fast"}, 32.0);
    scaling.beta_slow = fields.positive_or({"beta_slow"}, 1.0);
    scaling.truncate = fields.flag_or({"truncate"}, true);
    return scaling;
}

/// rope_parameters, or its entry for the layer type, or rope_scaling; nullptr when absent or of a wrong type.
const ConfigValue* find_parameters(FieldReader& fields, std::string_view layer_type) {
    const ConfigValue* value = fields.find({"rope_parameters", "rope_scaling"});
    if (value != nullptr && !value->is_object()) {
        fields.wrong_type(*value, "an object");
        return nullptr;
    }
    const ConfigValue* entry = value != nullptr ? value->find(layer_type) : nullptr;
    return entry != nullptr && entry->is_object() ? entry : value;
}

}  // namespace

RopeSpec read_rope(FieldReader& fields, std::int64_t rotary_dim, const RopeDefaults& defaults) {
    double theta = fields.positive_or({"rope_theta", "rotary_emb_base"}, defaults.theta);
    if (!defaults.scaled) {
        theta = fields.positive_or({"rope_local_base_freq"}, defaults.theta);
    }
    RopeScaling scaling;
    if (const ConfigValue* parameters = find_parameters(fields, defaults.layer_type)) {
        FieldReader inner(*parameters, fields.diagnostics());
        theta = inner.positive_or({"rope_theta"}, theta);
        if (defaults.scaled) {
            scaling = read_scaling(inner, fields, rotary_dim, defaults.max_positions);
        }
        if (!inner.ok()) {
            fields.fail();
        }
    }
    if (!fields.ok()) {
        return {};
    }
    if (rotary_dim < 2 || rotary_dim % 2 != 0) {
        fields.report(
            "SP2003", {"head_dim", "partial_rotary_factor", "rotary_pct", "rotary_dim"},
            fmt::format("rotary positions need an even number of dimensions of each head, not {}", rotary_dim));
        return {};
    }
    return make_rope(rotary_dim, theta, scaling);
}

}  // namespace shardplan::model
