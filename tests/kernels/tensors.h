// Tensors that own their data, and comparisons, for the tests of kernels.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/interval.h"
#include "kernels/random.h"
#include "tensor/view.h"

namespace shardplan::test {

using tensor::DType;
using tensor::Shape;

class Tensor {
public:
    explicit Tensor(Shape shape, DType dtype = DType::f32)
        : dtype_(dtype),
          shape_(std::move(shape)),
          bytes_(static_cast<std::size_t>(tensor::byte_count(shape_, dtype))) {}
    Tensor(Shape shape, const std::vector<float>& values, DType dtype = DType::f32) : Tensor(std::move(shape), dtype) {
        REQUIRE(static_cast<std::int64_t>(values.size()) == count());
        for (std::int64_t i = 0; i < count(); ++i) {
            set(i, values[static_cast<std::size_t>(i)]);
        }
    }

    std::int64_t count() const { return tensor::element_count(shape_); }
    const Shape& shape() const { return shape_; }
    tensor::View view() { return {bytes_.data(), dtype_, shape_}; }
    tensor::ConstView view() const { return {bytes_.data(), dtype_, shape_}; }
    operator tensor::View() { return view(); }             // NOLINT: short test code
    operator tensor::ConstView() const { return view(); }  // NOLINT

    double operator[](std::int64_t i) const {
        switch (dtype_) {
            case DType::f32: return view().as<float>()[i];
            case DType::f64: return view().as<double>()[i];
            case DType::i32: return view().as<std::int32_t>()[i];
            default: return tensor::float_from_bf16(view().as<std::uint16_t>()[i]);
        }
    }
    /// Value at the indices, one for each dimension.
    double at(std::initializer_list<std::int64_t> indices) const {
        std::int64_t place = 0;
        std::size_t dimension = 0;
        for (const std::int64_t index : indices) {
            place = place * shape_[dimension++] + index;
        }
        return (*this)[place];
    }
    void set(std::int64_t i, double value) {
        switch (dtype_) {
            case DType::f32: view().as<float>()[i] = static_cast<float>(value); break;
            case DType::f64: view().as<double>()[i] = value; break;
            case DType::i32: view().as<std::int32_t>()[i] = static_cast<std::int32_t>(value); break;
            default: view().as<std::uint16_t>()[i] = tensor::bf16_from_float(static_cast<float>(value));
        }
    }
    friend bool operator==(const Tensor&, const Tensor&) = default;

private:
    DType dtype_;
    Shape shape_;
    std::vector<std::byte> bytes_;
};

inline Tensor random_tensor(std::uint64_t key, Shape shape, DType dtype = DType::f32) {
    Tensor result(shape, dtype);
    std::vector<base::Interval> whole;
    for (const std::int64_t size : shape) {
        whole.push_back({0, size});
    }
    kernels::fill_block(7, key, 1.0F, 0.0F, shape, whole, result);
    return result;
}

/// Part of one dimension.
inline Tensor slice(const Tensor& x, std::size_t dimension, base::Interval range) {
    Shape shape = x.shape();
    std::int64_t inner = 1;
    for (std::size_t i = dimension + 1; i < shape.size(); ++i) {
        inner *= shape[i];
    }
    const std::int64_t size = shape[dimension];
    shape[dimension] = range.size();
    Tensor result(shape, x.view().dtype);
    for (std::int64_t i = 0; i < result.count(); ++i) {
        const std::int64_t outer = i / (inner * range.size());
        const std::int64_t middle = i / inner % range.size() + range.begin;
        result.set(i, x[(outer * size + middle) * inner + i % inner]);
    }
    return result;
}

/// What a kernel may be off by: one rounding of the stored type, and sums in float.
inline double tolerance(DType dtype) {
    return dtype == DType::f32 ? 2e-5 : 8e-3;
}

/// "" where |x - y| <= tolerance (1 + |y|) everywhere, else the worst element.
inline std::string difference(const Tensor& x, const Tensor& y, double tolerance) {
    if (x.shape() != y.shape()) {
        return "shapes differ";
    }
    std::string worst;
    double excess = 0.0;
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const double error = std::abs(x[i] - y[i]) / (1.0 + std::abs(y[i]));
        if (!(error <= tolerance) && !(error <= excess)) {
            excess = error;
            worst =
                "element " + std::to_string(i) + ": " + std::to_string(x[i]) + " instead of " + std::to_string(y[i]);
        }
    }
    return worst;
}

}  // namespace shardplan::test
