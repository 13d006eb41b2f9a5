#include <cmath>
#include <limits>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// exp(m - m_global), 0 for a part without keys (both may be -inf then).
float merge_factor(float m, float m_global) {
    return m == minus_infinity ? 0.0F : std::exp(m - m_global);
}

}  // namespace

void ReferenceKernels::softmax_rescale(ConstView l, ConstView m, ConstView m_global, View l_scaled) const {
    const std::int64_t count = l.count();
    for (const auto& [name, view] : {std::pair{"l", l}, std::pair{"m", m}, std::pair{"m_global", m_global},
                                     std::pair<const char*, ConstView>{"l_scaled", l_scaled}}) {
        check_shape("softmax_rescale", name, view.shape, l.shape);
        check_dtype("softmax_rescale", name, view.dtype, DType::f32);
    }
    for (std::int64_t i = 0; i < count; ++i) {
        l_scaled.as<float>()[i] = l.as<float>()[i] * merge_factor(m.as<float>()[i], m_global.as<float>()[i]);
    }
}

void ReferenceKernels::softmax_merge(ConstView o, ConstView m, ConstView m_global, ConstView l_global, View y) const {
    if (o.shape.empty()) {
        reject("softmax_merge", "o has no dimensions");
    }
    const tensor::Shape rows(o.shape.begin(), o.shape.end() - 1);
    check_dtype("softmax_merge", "o", o.dtype, DType::f32);
    for (const auto& [name, view] :
         {std::pair{"m", m}, std::pair{"m_global", m_global}, std::pair{"l_global", l_global}}) {
        check_shape("softmax_merge", name, view.shape, rows);
        check_dtype("softmax_merge", name, view.dtype, DType::f32);
    }
    check_float("softmax_merge", "y", y.dtype);
    check_shape("softmax_merge", "y", y.shape, o.shape);
    const std::int64_t width = o.shape.back();
    const std::int64_t count = m.count();
#pragma omp parallel if (worth_threads(count * width))
    {
        std::vector<float> values(static_cast<std::size_t>(width));
#pragma omp for schedule(static)
        for (std::int64_t i = 0; i < count; ++i) {
            const float total = l_global.as<float>()[i];
            const float part = merge_factor(m.as<float>()[i], m_global.as<float>()[i]);
            const float factor = total > 0.0F ? part / total : 0.0F;
            load_floats(o, i * width, width, values.data());
            for (float& value : values) {
                value *= factor;
            }
            store_floats(values.data(), width, y, i * width);
        }
    }
}

}  // namespace shardplan::kernels
