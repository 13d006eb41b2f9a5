// Slopes of attention with linear biases (Press et al. 2022): head h adds slope[h] * key position to its scores.
#pragma once

#include <cstdint>
#include <vector>

namespace shardplan::model {

/// For 2^n heads 2^(-8 k / 2^n), k = 1 ... 2^n; for other counts every second slope of twice as many heads follows
/// (bloom, falcon, baichuan). In float32.
std::vector<float> alibi_slopes(std::int64_t heads);

/// The order of mpt: for other counts than 2^n the odd-numbered slopes of the next 2^n stand first.
std::vector<float> alibi_slopes_mpt(std::int64_t heads, double bias_max);

}  // namespace shardplan::model
