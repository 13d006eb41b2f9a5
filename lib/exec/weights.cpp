#include "exec/weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace shardplan::exec {

void WeightSource::fill(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                        const tensor::View& y) const {
    if (parameter.padding > 0) {
        return fill_padded(parameter, layer, ranges, y);
    }
    if (!model::is_stored_per_expert(parameter)) {
        return fill_part(parameter, layer, ranges, y);
    }
    tensor::View part = y;
    part.shape.erase(part.shape.begin());
    for (std::int64_t expert = ranges[0].begin; expert < ranges[0].end; ++expert) {
        fill_part(model::part_of_expert(parameter, expert), layer, ranges.subspan(1), part);
        part.data += part.bytes();
    }
}

/// Rows are the first dimension: those of the checkpoint come first, zeros follow.
void WeightSource::fill_padded(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                               const tensor::View& y) const {
    const model::Parameter stored = model::without_padding(parameter);
    std::vector<base::Interval> filled(ranges.begin(), ranges.end());
    filled[0].begin = std::min(filled[0].begin, stored.shape[0]);
    filled[0].end = std::min(filled[0].end, stored.shape[0]);
    tensor::View part = y;
    part.shape[0] = filled[0].size();
    if (part.shape[0] > 0) {
        fill(stored, layer, filled, part);
    }
    std::memset(y.data + part.bytes(), 0, static_cast<std::size_t>(y.bytes() - part.bytes()));
}

}  // namespace shardplan::exec
