#include "exec/exact_reference.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardplan::exec {

std::optional<plan::Plan> in_f32(const plan::Plan& reference) {
    plan::Job job = reference.job;
    job.workload.dtype = tensor::DType::f32;
    diag::Diagnostics diagnostics;
    return plan::make_plan(job, diagnostics);
}

void Bf16Weights::fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                            tensor::View y) const {
    if (y.dtype == tensor::DType::bf16) {
        return weights_.fill(parameter, layer, ranges, y);
    }
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(y.count()));
    weights_.fill(parameter, layer, ranges, {reinterpret_cast<std::byte*>(bits.data()), tensor::DType::bf16, y.shape});
    std::transform(bits.begin(), bits.end(), y.as<float>(), tensor::float_from_bf16);
}

}  // namespace shardplan::exec
