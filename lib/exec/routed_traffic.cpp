#include "exec/routed_traffic.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/checked.h"

namespace shardplan::exec {
namespace {

using base::checked_add;
using base::checked_mul;

/// One dispatch_tokens step of one layer.
class Dispatched {
public:
    Dispatched(const plan::Plan& plan, const plan::BlockPlan& block, const plan::ComputeStep& step, int layer,
               const RoutingLog& log)
        : block_(block),
          step_(step),
          layer_(layer),
          log_(log),
          mesh_(plan.mesh.refined()),
          order_(plan.token_order),
          x_(value(step.inputs[0])),
          experts_(value(step.inputs[1]).shape.back() / mesh_.size(step.expert_axes)) {}

    /// Rows that leave their rank, all ranks together; token t of the step is at position first + t.
    std::int64_t leaving(std::int64_t first) const {
        std::int64_t rows = 0;
        for (std::int64_t rank = 0; rank < mesh_.device_count(); ++rank) {
            const auto ranges = partition::local_ranges(x_.layout, x_.shape, mesh_, rank);
            for (const std::int64_t member : mesh_.group(rank, step_.axes)) {
                rows += member == rank ? 0 : sent(ranges, first, mesh_.position(member, step_.expert_axes));
            }
        }
        return rows;
    }

    /// Of one row on all its ways: out, its routing, back.
    std::int64_t row_bytes() const {
        const plan::ValueId counts = step_.outputs[3];
        std::int64_t bytes = 0;
        for (const plan::Step& other : block_.steps) {
            if (other.collective &&
                (other.collective->send_counts == counts || other.collective->receive_counts == counts)) {
                const plan::Value& rows = value(other.collective->input);
                bytes += rows.local_bytes / rows.local_shape[0];
            }
        }
        return bytes;
    }

private:
    const plan::Value& value(plan::ValueId id) const { return block_.values[static_cast<std::size_t>(id)]; }

    /// Tokens of `ranges` that use experts of the rank at `position` among all that hold experts.
    std::int64_t sent(const std::vector<base::Interval>& ranges, std::int64_t first, std::int64_t position) const {
        std::int64_t rows = 0;
        for (std::int64_t b = ranges[0].begin; b < ranges[0].end; ++b) {
            for (std::int64_t t = ranges[1].begin; t < ranges[1].end; ++t) {
                rows += log_.uses(layer_, b, first + order_.position(t), position * experts_, experts_) ? 1 : 0;
            }
        }
        return rows;
    }

    const plan::BlockPlan& block_;
    const plan::ComputeStep& step_;
    int layer_;
    const RoutingLog& log_;
    const mesh::Mesh& mesh_;
    const plan::TokenOrder& order_;
    const plan::Value& x_;
    std::int64_t experts_;
};

}  // namespace

void RoutingLog::add(int layer, const tensor::ConstView& routing) {
    Layer& entry = chosen_[layer];
    entry.shape = routing.shape;
    entry.chosen.clear();
    for (std::int64_t i = 0; i < routing.count(); ++i) {
        entry.chosen.push_back(routing.as<float>()[i] != 0.0F);
    }
}

bool RoutingLog::uses(int layer, std::int64_t b, std::int64_t position, std::int64_t first, std::int64_t count) const {
    const auto found = chosen_.find(layer);
    if (found == chosen_.end()) {
        throw std::logic_error(fmt::format("the routing of layer {} was not recorded", layer));
    }
    const tensor::Shape& shape = found->second.shape;
    const std::int64_t row = (b * shape[1] + position) * shape[2];
    for (std::int64_t x = first; x < first + count; ++x) {
        if (found->second.chosen.at(static_cast<std::size_t>(row + x))) {
            return true;
        }
    }
    return false;
}

std::int64_t routed_bytes(const plan::Plan& plan, const RoutingLog& log, std::span<const std::int64_t> positions) {
    std::int64_t bytes = 0;
    for (const model::BlockUse& use : plan.sequence) {
        const plan::BlockPlan& block = plan.blocks[static_cast<std::size_t>(use.block)];
        for (const plan::Step& step : block.steps) {
            if (!step.compute || step.compute->kind != plan::ComputeKind::dispatch_tokens) {
                continue;
            }
            const Dispatched dispatched(plan, block, *step.compute, use.layer, log);
            std::int64_t rows = 0;
            for (const std::int64_t first : positions) {
                rows += dispatched.leaving(first);
            }
            bytes = checked_add(bytes, checked_mul(rows, dispatched.row_bytes()));
        }
    }
    return bytes;
}

}  // namespace shardplan::exec
