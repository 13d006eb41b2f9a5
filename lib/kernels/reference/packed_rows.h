// Rows of x in groups (row_groups.h): for one piece of k after the other all groups, in which the values of one k stand
// together. What one thread reads while it passes over the columns then lies in the order in which it is read.
#pragma once

#include <cstdint>

#include "base/interval.h"
#include "kernels/kernels.h"

namespace shardplan::kernels {

class PackedRows {
public:
    /// Values of k that are multiplied at once: the rows' part of it stays in the second cache.
    static constexpr std::int64_t piece = 384;
    static constexpr std::int64_t most_rows = 192;

    /// In how many chunks of equal size to take m rows of k values.
    static std::int64_t chunks(std::int64_t m, std::int64_t k);

    /// Rows [rows.begin, rows.end) of x [m, k], f32 or bf16, in memory that each thread keeps for its next one: only
    /// one may live at a time. @pre 0 < rows.size() <= most_rows
    PackedRows(const ConstView& x, base::Interval rows, std::int64_t k);

    std::int64_t groups() const { return groups_; }
    /// Rows of group g, counted from the first of all.
    base::Interval group(std::int64_t g) const { return {count_ * g / groups_, count_ * (g + 1) / groups_}; }
    /// [piece.size(), group(g).size()]. @pre k.begin is a multiple of `piece`
    const float* values(std::int64_t g, base::Interval k) const {
        return data_ + k.begin * count_ + group(g).begin * k.size();
    }

private:
    std::int64_t count_ = 0;
    std::int64_t groups_ = 1;
    float* data_ = nullptr;
};

}  // namespace shardplan::kernels
