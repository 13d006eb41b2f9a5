#include "model/alibi.h"

#include <bit>
#include <cmath>
#include <cstddef>

namespace shardplan::model {
namespace {

/// base^first, base^(first + step), ... for the base of `heads` = 2^n heads.
void append_powers(std::vector<float>& slopes, std::int64_t heads, std::int64_t count, std::int64_t step) {
    const auto base = static_cast<float>(std::exp2(-8.0 / static_cast<double>(heads)));
    for (std::int64_t i = 0; i < count; ++i) {
        slopes.push_back(std::pow(base, static_cast<float>(1 + i * step)));
    }
}

}  // namespace

std::vector<float> alibi_slopes(std::int64_t heads) {
    const auto whole = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    std::vector<float> slopes;
    append_powers(slopes, whole, whole, 1);
    append_powers(slopes, 2 * whole, heads - whole, 2);
    return slopes;
}

std::vector<float> alibi_slopes_mpt(std::int64_t heads, double bias_max) {
    const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
    std::vector<float> all;
    for (std::int64_t k = 1; k <= whole; ++k) {
        const float exponent = static_cast<float>(k) * static_cast<float>(bias_max / static_cast<double>(whole));
        all.push_back(1.0F / std::pow(2.0F, exponent));
    }
    if (whole == heads) {
        return all;
    }
    std::vector<float> slopes;
    for (const std::size_t first : {std::size_t{1}, std::size_t{0}}) {
        for (std::size_t i = first; i < all.size(); i += 2) {
            slopes.push_back(all[i]);
        }
    }
    slopes.resize(static_cast<std::size_t>(heads));
    return slopes;
}

}  // namespace shardplan::model
