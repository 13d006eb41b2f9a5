#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/element_loops.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

/// Cosines and sines of the pairs of one position, as the loops want them.
class Rotation {
public:
    explicit Rotation(const RopeParams& params)
        : params_(params), cos_(params.inv_freq.size()), sin_(params.inv_freq.size()) {
        if (params.interleaved) {
            twice_cos_.resize(2 * cos_.size());
            twice_sin_.resize(2 * sin_.size());
        }
    }

    // As Hugging Face: the angle is a float32 product; only cos and sin of it are taken more precisely.
    void set(std::int64_t position) {
        const std::int64_t pairs = std::ssize(cos_);
        const ElementLoops& loops = element_loops();
        loops.cos_sin(static_cast<float>(position), params_.inv_freq.data(), pairs, cos_.data(), sin_.data());
        if (params_.attention_factor != 1.0F) {
            loops.f32.map(Map::scale, params_.attention_factor, cos_.data(), pairs, cos_.data());
            loops.f32.map(Map::scale, params_.attention_factor, sin_.data(), pairs, sin_.data());
        }
        for (std::size_t i = 0; i < twice_cos_.size(); i += 2) {
            twice_cos_[i] = twice_cos_[i + 1] = cos_[i / 2];
            twice_sin_[i] = -sin_[i / 2];
            twice_sin_[i + 1] = sin_[i / 2];
        }
    }

    /// For heads of `dim` elements.
    HeadRotation of_heads(std::int64_t dim) const {
        const bool twice = params_.interleaved;
        return {.cos = twice ? twice_cos_.data() : cos_.data(),
                .sin = twice ? twice_sin_.data() : sin_.data(),
                .pairs = std::ssize(cos_),
                .stride = dim,
                .neighbours = twice};
    }

private:
    const RopeParams& params_;
    std::vector<float> cos_, sin_;
    std::vector<float> twice_cos_, twice_sin_;
};

/// Heads of x [count, dim] at one position.
template <typename T>
void turn_heads(const T* x, std::int64_t count, std::int64_t dim, const RopeParams& params, const Rotation& rotation,
                T* y) {
    const std::int64_t behind = params.first + params.rotary_dim;
    if (x != y && params.rotary_dim < dim) {
        for (std::int64_t h = 0; h < count; ++h) {
            std::copy_n(x + h * dim, params.first, y + h * dim);
            std::copy_n(x + h * dim + behind, dim - behind, y + h * dim + behind);
        }
    }
    element_functions<T>().rotate(x + params.first, rotation.of_heads(dim), count, y + params.first);
}

void check_rope(const ConstView& x, std::span<const std::int64_t> start, const RopeParams& params, const View& y) {
    check_rank("rope", "x", x.shape, 4);
    check_float("rope", "x", x.dtype);
    check_dtype("rope", "y", y.dtype, x.dtype);
    check_shape("rope", "y", y.shape, x.shape);
    check_length("rope", "start", start.size(), x.shape[0]);
    check_length("rope", "inv_freq", params.inv_freq.size(), params.rotary_dim / 2);
    if (params.rotary_dim < 0 || params.rotary_dim % 2 != 0 || params.first < 0 ||
        params.first + params.rotary_dim > x.shape[3]) {
        const std::string from = params.first == 0 ? "" : fmt::format(", from dimension {} on", params.first);
        reject("rope", fmt::format("rotary_dim {} must be even and at most the head dimension {}{}", params.rotary_dim,
                                   x.shape[3], from));
    }
}

}  // namespace

void ReferenceKernels::rope(ConstView x, std::span<const std::int64_t> start, const RopeParams& params, View y) const {
    check_rope(x, start, params, y);
    const std::int64_t tokens = x.shape[1];
    const std::int64_t width = x.shape[2] * x.shape[3];
    const auto turn_all = [&]<typename T>(const T* from, T* to) {
#pragma omp parallel if (worth_threads(x.count()))
        {
            Rotation rotation(params);
#pragma omp for schedule(static)
            for (std::int64_t t = 0; t < x.shape[0] * tokens; ++t) {
                rotation.set(start[static_cast<std::size_t>(t / tokens)] + t % tokens);
                turn_heads(from + t * width, x.shape[2], x.shape[3], params, rotation, to + t * width);
            }
        }
    };
    x.dtype == tensor::DType::f32 ? turn_all(x.as<float>(), y.as<float>())
                                  : turn_all(x.as<std::uint16_t>(), y.as<std::uint16_t>());
}

}  // namespace shardplan::kernels
