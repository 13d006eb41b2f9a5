#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace shardplan::model {
namespace {

using Frequencies = std::vector<float>;

/// theta^(2i / dim) for i = 0 ... dim/2 - 1.
Frequencies wavelengths_per_turn(std::int64_t dim, double theta) {
    Frequencies result;
    for (std::int64_t i = 0; i < dim; i += 2) {
        result.push_back(std::pow(static_cast<float>(theta), static_cast<float>(i) / static_cast<float>(dim)));
    }
    return result;
}

Frequencies inverse(const Frequencies& values, const std::vector<double>& factors = {}) {
    Frequencies result;
    for (std::size_t i = 0; i < values.size(); ++i) {
        result.push_back(1.0F / (factors.empty() ? values[i] : static_cast<float>(factors[i]) * values[i]));
    }
    return result;
}

/// Frequencies whose wavelength is long against the trained length are divided by the factor, short ones kept, those
/// between interpolated.
void scale_llama3(Frequencies& frequencies, const RopeScaling& s) {
    const auto factor = static_cast<float>(s.factor);
    const auto trained = static_cast<float>(s.original_positions);
    const auto low = static_cast<float>(s.low_frequency_factor);
    const auto high = static_cast<float>(s.high_frequency_factor);
    for (float& f : frequencies) {
        const float wavelength = 2.0F * std::numbers::pi_v<float> / f;
        if (wavelength > trained / low) {
            f /= factor;
        } else if (wavelength >= trained / high && high > low) {  // equal factors leave nothing between them (llama4)
            const float smooth = (trained / wavelength - low) / (high - low);
            f = (1.0F - smooth) * f / factor + smooth * f;
        }
    }
}

/// The dimension whose frequency makes `rotations` turns within the trained length.
double yarn_dimension(double rotations, double dim, double theta, double trained) {
    return dim * std::log(trained / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(theta));
}

void scale_yarn(Frequencies& frequencies, double theta, const RopeScaling& s) {
    const auto dim = static_cast<double>(2 * frequencies.size());
    double low = yarn_dimension(s.beta_fast, dim, theta, static_cast<double>(s.original_positions));
    double high = yarn_dimension(s.beta_slow, dim, theta, static_cast<double>(s.original_positions));
    if (s.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1.0);
    high += low == high ? 0.001 : 0.0;
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const float ramp =
            std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
        const float interpolated = frequencies[i] / static_cast<float>(s.factor);
        frequencies[i] = interpolated * ramp + frequencies[i] * (1.0F - ramp);
    }
}

double yarn_magnitude(double factor, double mscale) {
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double yarn_attention_factor(const RopeScaling& s) {
    if (s.attention_factor) {
        return *s.attention_factor;
    }
    if (s.mscale && s.mscale_all_dim) {
        return yarn_magnitude(s.factor, *s.mscale) / yarn_magnitude(s.factor, *s.mscale_all_dim);
    }
    return yarn_magnitude(s.factor, 1.0);
}

double longrope_attention_factor(const RopeScaling& s) {
    if (s.attention_factor) {
        return *s.attention_factor;
    }
    return s.factor <= 1.0 ? 1.0
                           : std::sqrt(1.0 + std::log(s.factor) / std::log(static_cast<double>(s.original_positions)));
}

}  // namespace

RopeSpec make_rope(std::int64_t rotary_dim, double theta, const RopeScaling& scaling) {
    RopeSpec rope;
    rope.rotary_dim = rotary_dim;
    const Frequencies wavelengths = wavelengths_per_turn(rotary_dim, theta);
    rope.inverse_frequencies = inverse(wavelengths);
    switch (scaling.type) {
        case RopeScalingType::none: break;
        case RopeScalingType::linear:
            for (float& f : rope.inverse_frequencies) {
                f /= static_cast<float>(scaling.factor);
            }
            break;
        case RopeScalingType::dynamic:
            rope.theta = theta;
            rope.dynamic_factor = scaling.factor;
            rope.original_positions = scaling.original_positions;
            break;
        case RopeScalingType::yarn:
            scale_yarn(rope.inverse_frequencies, theta, scaling);
            rope.attention_factor = yarn_attention_factor(scaling);
            break;
        case RopeScalingType::llama3: scale_llama3(rope.inverse_frequencies, scaling); break;
        case RopeScalingType::longrope:
            rope.inverse_frequencies = inverse(wavelengths, scaling.short_factors);
            rope.long_inverse_frequencies = inverse(wavelengths, scaling.long_factors);
            rope.attention_factor = longrope_attention_factor(scaling);
            rope.original_positions = scaling.original_positions;
            break;
    }
    return rope;
}

RopeSpec rope_for_positions(const RopeSpec& rope, std::int64_t positions) {
    RopeSpec result = rope;
    if (rope.original_positions == 0 || positions <= rope.original_positions) {
        return result;
    }
    if (!rope.long_inverse_frequencies.empty()) {
        result.inverse_frequencies = rope.long_inverse_frequencies;
    } else if (rope.dynamic_factor > 0.0 && rope.rotary_dim > 2) {
        const auto dim = static_cast<double>(rope.rotary_dim);
        const double stretch = static_cast<double>(positions) / static_cast<double>(rope.original_positions);
        const double growth = rope.dynamic_factor * stretch - (rope.dynamic_factor - 1.0);
        result.inverse_frequencies =
            inverse(wavelengths_per_turn(rope.rotary_dim, rope.theta * std::pow(growth, dim / (dim - 2.0))));
    }
    return result;
}

}  // namespace shardplan::model
