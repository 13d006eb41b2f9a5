#include "exec/seeded_weights.h"

#include <cmath>
#include <string>

#include "base/hash.h"
#include "kernels/random.h"

namespace shardplan::exec {
namespace {

double inverse_root(std::int64_t n) {
    return 1.0 / std::sqrt(static_cast<double>(n));
}

}  // namespace

SeededWeights::SeededWeights(std::uint64_t seed, const model::ModelSpec& model)
    : seed_(seed), embedding_scale_(1.0 / model.embedding_scale), head_factor_(1.0 / model.logit_scale) {
    if (model.tied_embeddings) {
        // The rows are also the head's, whose input has been normalised.
        embedding_scale_ = head_factor_ * inverse_root(model.hidden);
    }
    position_scale_ = embedding_scale_ * model.embedding_scale;
}

SeededWeights::Distribution SeededWeights::distribution(const model::Parameter& parameter) const {
    switch (parameter.kind) {
        case model::ParameterKind::embedding: return {embedding_scale_, 0.0};
        case model::ParameterKind::position_embedding: return {position_scale_, 0.0};
        case model::ParameterKind::column_linear:
        case model::ParameterKind::row_linear:
        case model::ParameterKind::replicated_linear:
        case model::ParameterKind::latent_linear: {
            const std::int64_t fan_in = parameter.shape[parameter.transposed ? 0 : 1];
            const bool head = parameter.parallel == model::ParallelDim::vocab;
            return {inverse_root(fan_in) * (head ? head_factor_ : 1.0), 0.0};
        }
        case model::ParameterKind::expert_column:
        case model::ParameterKind::expert_row:
            return {inverse_root(parameter.transposed ? parameter.shape[1] : parameter.shape.back()), 0.0};
        case model::ParameterKind::sinks: return {1.0, 0.0};
        case model::ParameterKind::norm_weight: return {0.1, 1.0 - parameter.norm_offset};
        case model::ParameterKind::router_bias:
        case model::ParameterKind::expert_column_bias:
        case model::ParameterKind::expert_row_bias:
        case model::ParameterKind::norm_bias:
        case model::ParameterKind::column_bias:
        case model::ParameterKind::row_bias: return {0.1, 0.0};
    }
    return {};
}

void SeededWeights::fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                              tensor::View y) const {
    std::string name = model::name_in_layer(parameter.name, layer);
    if (!parameter.part.empty()) {
        name += '#' + parameter.part;
    }
    const Distribution values = distribution(parameter);
    kernels::fill_block(seed_, base::fnv1a(name), static_cast<float>(values.scale), static_cast<float>(values.mean),
                        parameter.shape, ranges, std::move(y));
}

}  // namespace shardplan::exec
