#include "exec/weights.h"

namespace shardplan::exec {

void WeightSource::fill(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                        const tensor::View& y) const {
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

}  // namespace shardplan::exec
