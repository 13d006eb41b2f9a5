#include "exec/rounded_weights.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/quantise.h"

namespace shardplan::exec {
namespace {

using base::Interval;
using tensor::DType;

/// The different ranges of inputs that devices hold.
std::vector<Interval> input_cuts(const plan::Plan& plan, const plan::StoredTensor& stored, std::size_t dim) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    std::set<std::pair<std::int64_t, std::int64_t>> found;
    for (std::int64_t rank = 0; rank < mesh.device_count(); ++rank) {
        const Interval range = partition::local_ranges(stored.layout, stored.shape, mesh, rank)[dim];
        if (range.size() > 0) {
            found.emplace(range.begin, range.end);
        }
    }
    std::vector<Interval> cuts;
    for (const auto& [begin, end] : found) {
        cuts.push_back({begin, end});
    }
    return cuts;
}

std::size_t input_dim(const model::Parameter& parameter) {
    return parameter.transposed ? 0 : 1;
}

/// A matrix of floats, element (output, input).
class Floats {
public:
    Floats(const tensor::ConstView& block, bool transposed)
        : values_(static_cast<std::size_t>(block.count())),
          outputs_(block.shape[transposed ? 1 : 0]),
          inputs_(block.shape[transposed ? 0 : 1]) {
        for (std::int64_t i = 0; i < block.count(); ++i) {
            const std::int64_t place = transposed ? i % outputs_ * inputs_ + i / outputs_ : i;
            values_[static_cast<std::size_t>(place)] = block.dtype == DType::f32
                                                           ? block.as<float>()[i]
                                                           : tensor::float_from_bf16(block.as<std::uint16_t>()[i]);
        }
    }

    void round() {
        for (std::int64_t n = 0; n < outputs_; ++n) {
            const auto row =
                std::span(values_).subspan(static_cast<std::size_t>(n * inputs_), static_cast<std::size_t>(inputs_));
            const float scale = kernels::quantise(row);
            for (float& value : row) {
                value *= scale;
            }
        }
    }

    std::int64_t outputs() const { return outputs_; }
    float at(std::int64_t n, std::int64_t k) const { return values_[static_cast<std::size_t>(n * inputs_ + k)]; }

private:
    std::vector<float> values_;
    std::int64_t outputs_;
    std::int64_t inputs_;
};

void put(const Floats& block, Interval from, bool transposed, std::int64_t first, const tensor::View& y) {
    const std::int64_t width = y.shape[1];
    for (std::int64_t n = 0; n < block.outputs(); ++n) {
        for (std::int64_t k = from.begin; k < from.end; ++k) {
            const std::int64_t to = first + k - from.begin;
            const std::int64_t place = transposed ? to * width + n : n * width + to;
            if (y.dtype == DType::f32) {
                y.as<float>()[place] = block.at(n, k);
            } else {
                y.as<std::uint16_t>()[place] = tensor::bf16_from_float(block.at(n, k));
            }
        }
    }
}

}  // namespace

RoundedWeights::RoundedWeights(const WeightSource& weights, const plan::Plan& plan)
    : weights_(weights), dtype_(plan.graph.workload.dtype) {
    for (const plan::StoredTensor& stored : plan.stored) {
        if (stored.dtype == DType::i8) {
            const model::Parameter& parameter = plan.graph.parameters[static_cast<std::size_t>(stored.parameter)];
            const std::vector<Interval> cuts = input_cuts(plan, stored, input_dim(parameter));
            for (const int layer : stored.layers) {
                cuts_[{parameter.name, parameter.part, layer}] = cuts;
            }
        }
    }
}

void RoundedWeights::fill_part(const model::Parameter& parameter, int layer, std::span<const Interval> ranges,
                               tensor::View y) const {
    const auto found = cuts_.find({parameter.name, parameter.part, layer});
    if (found == cuts_.end()) {
        return weights_.fill(parameter, layer, ranges, y);
    }
    const std::size_t dim = input_dim(parameter);
    for (const Interval cut : found->second) {
        const Interval wanted{std::max(cut.begin, ranges[dim].begin), std::min(cut.end, ranges[dim].end)};
        if (wanted.begin >= wanted.end) {
            continue;
        }
        std::vector<Interval> whole(ranges.begin(), ranges.end());
        whole[dim] = cut;
        tensor::Shape shape = y.shape;
        shape[dim] = cut.size();
        std::vector<std::byte> bytes(static_cast<std::size_t>(tensor::byte_count(shape, dtype_)));
        const tensor::View block{bytes.data(), dtype_, shape};
        weights_.fill(parameter, layer, whole, block);
        Floats floats(block, parameter.transposed);
        floats.round();
        put(floats, {wanted.begin - cut.begin, wanted.end - cut.begin}, parameter.transposed,
            wanted.begin - ranges[dim].begin, y);
    }
}

}  // namespace shardplan::exec
