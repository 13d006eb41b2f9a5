#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

struct Rotation {
    std::vector<float> cos;
    std::vector<float> sin;
};

// As Hugging Face: the angle is a float32 product; only cos and sin of it are taken more precisely.
void rotation_at(std::int64_t position, const RopeParams& params, Rotation& rotation) {
    for (std::size_t i = 0; i < params.inv_freq.size(); ++i) {
        const float angle = static_cast<float>(position) * params.inv_freq[i];
        rotation.cos[i] = static_cast<float>(std::cos(static_cast<double>(angle))) * params.attention_factor;
        rotation.sin[i] = static_cast<float>(std::sin(static_cast<double>(angle))) * params.attention_factor;
    }
}

void rotate_head(float* head, const Rotation& rotation, bool interleaved) {
    const auto pairs = static_cast<std::int64_t>(rotation.cos.size());
    const float* cos = rotation.cos.data();
    const float* sin = rotation.sin.data();
    const std::int64_t step = interleaved ? 2 : 1;
    float* second = head + (interleaved ? 1 : pairs);
    for (std::int64_t i = 0; i < pairs; ++i) {
        const float a = head[step * i];
        const float b = second[step * i];
        head[step * i] = a * cos[i] - b * sin[i];
        second[step * i] = b * cos[i] + a * sin[i];
    }
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
#pragma omp parallel if (worth_threads(x.count()))
    {
        Rotation rotation{std::vector<float>(params.inv_freq.size()), std::vector<float>(params.inv_freq.size())};
        std::vector<float> row(static_cast<std::size_t>(width));
#pragma omp for schedule(static)
        for (std::int64_t t = 0; t < x.shape[0] * tokens; ++t) {
            rotation_at(start[static_cast<std::size_t>(t / tokens)] + t % tokens, params, rotation);
            load_floats(x, t * width, width, row.data());
            for (std::int64_t h = 0; h < x.shape[2]; ++h) {
                rotate_head(row.data() + h * x.shape[3] + params.first, rotation, params.interleaved);
            }
            store_floats(row.data(), width, y, t * width);
        }
    }
}

}  // namespace shardplan::kernels
