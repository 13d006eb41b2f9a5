#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/element_loops.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using tensor::DType;

struct Sizes {
    std::int64_t rows = 0, experts = 0, inner = 0, in = 0, out = 0;
};

/// {X, outputs, inputs} of stacked weights.
tensor::Shape natural_shape(const ConstView& w, WeightOrder order) {
    const std::size_t out = order == WeightOrder::out_in ? 1 : 2;
    return {w.shape[0], w.shape[out], w.shape[3 - out]};
}

void check_bias(const char* name, const ConstView& bias, const ConstView& x, std::int64_t experts, std::int64_t width) {
    if (!absent(bias)) {
        check_dtype("experts", name, bias.dtype, x.dtype);
        check_shape("experts", name, bias.shape, {experts, width});
    }
}

Sizes check_experts(const ConstView& x, const ConstView& routing, const ExpertWeights& w, const ExpertParams& params,
                    const View& y) {
    check_float("experts", "x", x.dtype);
    check_float("experts", "y", y.dtype);
    check_dtype("experts", "routing", routing.dtype, DType::f32);
    for (const ConstView* weight : {&w.gate, &w.up, &w.down}) {
        check_dtype("experts", "weight", weight->dtype, x.dtype);
        check_rank("experts", "weight", weight->shape, 3);
    }
    if (x.shape.empty()) {
        reject("experts", "x needs at least one dimension");
    }
    const tensor::Shape gate = natural_shape(w.gate, params.gate_up_order);
    const tensor::Shape down = natural_shape(w.down, params.down_order);
    const Sizes n{leading_count(x.shape), gate[0], gate[1], x.shape.back(), down[1]};
    check_shape("experts", "gate", gate, {n.experts, n.inner, n.in});
    check_shape("experts", "up", w.up.shape, w.gate.shape);
    check_shape("experts", "down", down, {n.experts, n.out, n.inner});
    check_bias("gate_bias", w.gate_bias, x, n.experts, n.inner);
    check_bias("up_bias", w.up_bias, x, n.experts, n.inner);
    check_bias("down_bias", w.down_bias, x, n.experts, n.out);
    tensor::Shape wanted = x.shape;
    wanted.back() = n.experts;
    check_shape("experts", "routing", routing.shape, wanted);
    wanted.back() = n.out;
    check_shape("experts", "y", y.shape, wanted);
    return n;
}

/// Part `index` of a tensor along its first dimension.
ConstView part_of(const ConstView& w, std::int64_t index) {
    tensor::Shape shape(w.shape.begin() + 1, w.shape.end());
    const std::int64_t bytes = w.bytes() / std::max<std::int64_t>(w.shape[0], 1);
    return {w.data + index * bytes, w.dtype, std::move(shape)};
}

/// A matrix that owns its memory.
struct Rows {
    Rows(std::int64_t rows, std::int64_t width, DType dtype)
        : data(static_cast<std::size_t>(rows * width * tensor::size_of(dtype))),
          view{data.data(), dtype, {rows, width}} {}
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    std::vector<std::byte> data;
    View view;
};

/// What the experts [begin, end) do, each with its own tokens. Rows are ordered by expert, then by token.
class ExpertRun {
public:
    ExpertRun(const Kernels& kernels, const ConstView& x, const ConstView& routing, const ExpertWeights& weights,
              const ExpertParams& params, const Sizes& sizes)
        : kernels_(kernels), x_(x), routing_(routing), w_(weights), params_(params), n_(sizes) {}

    /// Adds to sums[rows, out].
    void run(std::int64_t begin, std::int64_t end, std::vector<float>& sums) {
        begin_ = begin;
        choose(end);
        const std::int64_t count = first_rows_.back();
        if (count == 0) {
            return;
        }
        const Rows taken(count, n_.in, x_.dtype);
        take(taken.view);
        const Rows gate(count, n_.inner, DType::f32);
        const Rows up(count, n_.inner, DType::f32);
        const Rows inner(count, n_.inner, x_.dtype);
        const Rows result(count, n_.out, DType::f32);
        product(taken.view, w_.gate, w_.gate_bias, params_.gate_up_order, gate.view);
        product(taken.view, w_.up, w_.up_bias, params_.gate_up_order, up.view);
        activate(gate.view, up.view, inner.view);
        product(inner.view, w_.down, w_.down_bias, params_.down_order, result.view);
        add_to(sums, result.view.as<float>());
    }

private:
    float weight(std::int64_t row, std::int64_t expert) const {
        return routing_.as<float>()[row * n_.experts + expert];
    }

    void choose(std::int64_t end) {
        tokens_.clear();
        first_rows_ = {0};
        for (std::int64_t expert = begin_; expert < end; ++expert) {
            for (std::int64_t row = 0; row < n_.rows; ++row) {
                if (weight(row, expert) != 0.0F) {
                    tokens_.push_back(row);
                }
            }
            first_rows_.push_back(std::ssize(tokens_));
        }
    }

    /// Calls visit(row, token, expert).
    template <typename Visit>
    void for_rows(Visit visit) const {
        for (std::size_t group = 0; group + 1 < first_rows_.size(); ++group) {
            for (std::int64_t row = first_rows_[group]; row < first_rows_[group + 1]; ++row) {
                visit(row, tokens_[static_cast<std::size_t>(row)], begin_ + static_cast<std::int64_t>(group));
            }
        }
    }

    void take(const View& rows) const {
        const std::int64_t bytes = n_.in * tensor::size_of(x_.dtype);
        std::vector<float> values(params_.scale_input ? static_cast<std::size_t>(n_.in) : 0);
        for_rows([&](std::int64_t row, std::int64_t token, std::int64_t expert) {
            if (!params_.scale_input) {
                std::memcpy(rows.data + row * bytes, x_.data + token * bytes, static_cast<std::size_t>(bytes));
                return;
            }
            load_floats(x_, token * n_.in, n_.in, values.data());
            element_loops().f32.map(Map::scale, weight(token, expert), values.data(), n_.in, values.data());
            store_floats(values.data(), n_.in, rows, row * n_.in);
        });
    }

    void product(const View& rows, const ConstView& w, const ConstView& bias, WeightOrder order, const View& y) const {
        if (params_.grouped) {
            const ConstView group{w.data + begin_ * (w.bytes() / w.shape[0]),
                                  w.dtype,
                                  {std::ssize(first_rows_) - 1, w.shape[1], w.shape[2]}};
            kernels_.grouped_matmul(rows, group, order, first_rows_, y);
        } else {
            kernels_.matmul_plain(rows, part_of(w, begin_), order, y);
        }
        if (absent(bias)) {
            return;
        }
        const std::int64_t width = bias.shape[1];
        std::vector<float> values(static_cast<std::size_t>(width));
        for_rows([&](std::int64_t row, std::int64_t /*token*/, std::int64_t expert) {
            load_floats(bias, expert * width, width, values.data());
            float* target = y.as<float>() + row * width;
            element_loops().f32.add(target, values.data(), width, target);
        });
    }

    void activate(const View& gate, const View& up, const View& inner) const {
        if (params_.swiglu_limit <= 0.0F) {
            kernels_.glu(gate, up, params_.activation, inner);
            return;
        }
        std::vector<float> values(static_cast<std::size_t>(inner.count()));
        element_loops().clamped_glu(gate.as<float>(), up.as<float>(), params_.swiglu_limit, inner.count(),
                                    values.data());
        store_floats(values.data(), inner.count(), inner, 0);
    }

    void add_to(std::vector<float>& sums, const float* values) const {
        for_rows([&](std::int64_t row, std::int64_t token, std::int64_t expert) {
            const float factor = params_.scale_input ? 1.0F : weight(token, expert);
            element_loops().add_scaled(values + row * n_.out, factor, n_.out, sums.data() + token * n_.out);
        });
    }

    const Kernels& kernels_;
    const ConstView& x_;
    const ConstView& routing_;
    const ExpertWeights& w_;
    const ExpertParams& params_;
    Sizes n_;
    std::int64_t begin_ = 0;
    std::vector<std::int64_t> tokens_;      ///< of each row
    std::vector<std::int64_t> first_rows_;  ///< of each expert from begin_ on, and the number of rows
};

}  // namespace

void ReferenceKernels::experts(ConstView x, ConstView routing, const ExpertWeights& weights, const ExpertParams& params,
                               View y) const {
    const Sizes n = check_experts(x, routing, weights, params, y);
    std::vector<float> sums(static_cast<std::size_t>(n.rows * n.out), 0.0F);
    ExpertRun run(*this, x, routing, weights, params, n);
    if (params.grouped) {
        run.run(0, n.experts, sums);
    } else {
        for (std::int64_t expert = 0; expert < n.experts; ++expert) {
            run.run(expert, expert + 1, sums);
        }
    }
    store_floats(sums.data(), n.rows * n.out, y, 0);
}

namespace {

/// y[r, :] = x[r, :] * factor_of(r) for rows of `width`.
template <typename FactorOf>
void scale_each(const ConstView& x, std::int64_t width, const View& y, FactorOf factor_of) {
    const std::int64_t rows = width == 0 ? 0 : x.count() / width;
#pragma omp parallel if (worth_threads(x.count()))
    {
        std::vector<float> values(static_cast<std::size_t>(width));
#pragma omp for schedule(static)
        for (std::int64_t r = 0; r < rows; ++r) {
            load_floats(x, r * width, width, values.data());
            element_loops().f32.map(Map::scale, factor_of(r), values.data(), width, values.data());
            store_floats(values.data(), width, y, r * width);
        }
    }
}

}  // namespace

void ReferenceKernels::scale_rows(ConstView x, std::span<const float> factors, View y) const {
    check_elementwise("scale_rows", x, x, y);
    const auto rows = static_cast<std::int64_t>(factors.size());
    if (rows == 0 ? x.count() != 0 : x.count() % rows != 0) {
        reject("scale_rows", "the elements cannot be cut into as many rows as there are factors");
    }
    const std::int64_t width = rows == 0 ? 0 : x.count() / rows;
    scale_each(x, width, y, [&](std::int64_t row) { return factors[static_cast<std::size_t>(row)]; });
}

void ReferenceKernels::gate_rows(ConstView x, ConstView gate, View y) const {
    check_float("gate_rows", "x", x.dtype);
    check_float("gate_rows", "gate", gate.dtype);
    check_float("gate_rows", "y", y.dtype);
    check_shape("gate_rows", "y", y.shape, x.shape);
    if (x.shape.empty()) {
        reject("gate_rows", "x needs at least one dimension");
    }
    tensor::Shape wanted = x.shape;
    wanted.back() = 1;
    check_shape("gate_rows", "gate", gate.shape, wanted);
    const std::int64_t width = x.shape.back();
    scale_each(x, width, y, [&](std::int64_t row) {
        float logit = 0.0F;
        load_floats(gate, row, 1, &logit);
        return 1.0F / (1.0F + std::exp(-logit));
    });
}

}  // namespace shardplan::kernels
