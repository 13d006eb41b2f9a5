#include "exec/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace shardplan::exec {
namespace {

double rms_of(const std::vector<float>& values) {
    double squares = 0.0;
    for (const float value : values) {
        squares += static_cast<double>(value) * value;
    }
    return values.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(values.size()));
}

tensor::Shape index_of(std::int64_t element, const tensor::Shape& shape) {
    tensor::Shape index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = element % shape[d];
        element /= shape[d];
    }
    return index;
}

}  // namespace

Tolerance int8_tolerance_of(tensor::DType dtype, std::int64_t layers) {
    constexpr double most = 1.0 / 254.0;  // by which a weight is off, of its channel's largest
    const Tolerance stored = tolerance_of(dtype, layers);
    const double rms = 4.2 * most * std::sqrt(static_cast<double>(layers + 1));
    return {stored.absolute + 6.0 * rms, stored.relative + most, stored.rms + rms};
}

Tolerance tolerance_of(tensor::DType dtype, std::int64_t layers) {
    if (dtype == tensor::DType::f32) {
        return {2e-5, 2e-5, 1e-5};
    }
    constexpr double ulp = 1.0 / 256.0;  // of bf16 at 1
    const double rms = 2.0 * ulp * std::sqrt(static_cast<double>(layers + 1));
    return {6.0 * rms, ulp, rms};
}

Tolerance measured_tolerance(const Tolerance& stated, const Comparison& own) {
    constexpr double most = 0.1;
    const double rms = std::max(stated.rms, std::min(1.5 * own.relative_rms, most));
    const double worst = own.max_absolute / std::max(1.0, own.reference_rms);
    return {std::max(6.0 * rms, std::min(2.0 * worst, 6.0 * most)), stated.relative, rms};
}

Comparison compare(const FloatTensor& values, const FloatTensor& reference, const Tolerance& tolerance) {
    if (values.shape != reference.shape || values.values.size() != reference.values.size()) {
        throw std::invalid_argument("compare: shapes " + tensor::to_string(values.shape) + " and " +
                                    tensor::to_string(reference.shape));
    }
    Comparison result;
    result.tolerance = tolerance;
    result.compared = std::ssize(values.values);
    result.reference_rms = rms_of(reference.values);
    const double scale = std::max(1.0, result.reference_rms);
    double squares = 0.0;
    double worst = -1.0;
    for (std::int64_t i = 0; i < result.compared; ++i) {
        const double a = values.values[static_cast<std::size_t>(i)];
        const double b = reference.values[static_cast<std::size_t>(i)];
        const bool finite = std::isfinite(a) && std::isfinite(b);
        const double error = finite ? std::abs(a - b) : std::numeric_limits<double>::infinity();
        result.not_finite += finite ? 0 : 1;
        result.failed += error <= tolerance.absolute * scale + tolerance.relative * std::abs(b) ? 0 : 1;
        squares += error * error;
        if (error > worst) {
            worst = error;
            result.worst = index_of(i, values.shape);
            result.worst_value = values.values[static_cast<std::size_t>(i)];
            result.worst_reference = reference.values[static_cast<std::size_t>(i)];
        }
        if (finite && error > 0.0) {
            result.max_relative = std::max(result.max_relative, error / std::max(std::abs(b), result.reference_rms));
        }
    }
    result.max_absolute = std::max(worst, 0.0);
    const double count = static_cast<double>(std::max<std::int64_t>(result.compared, 1));
    const double tiny = std::numeric_limits<float>::min();
    result.relative_rms = std::sqrt(squares / count) / std::max(result.reference_rms, tiny);
    result.passed = result.compared > 0 && result.failed == 0 && result.relative_rms <= tolerance.rms;
    return result;
}

}  // namespace shardplan::exec
