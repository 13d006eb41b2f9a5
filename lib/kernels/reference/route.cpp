#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/reference_kernels.h"

namespace shardplan::kernels {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Numbers of the `k` largest values, the best first; of equal ones the lower number.
std::vector<std::size_t> largest(const std::vector<double>& values, std::int64_t k) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    order.resize(static_cast<std::size_t>(k));
    return order;
}

std::vector<double> softmax(const std::vector<double>& logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    std::vector<double> result;
    double sum = 0.0;
    for (const double logit : logits) {
        result.push_back(std::exp(logit - most));
        sum += result.back();
    }
    for (double& value : result) {
        value /= sum;
    }
    return result;
}

/// One token.
class Router {
public:
    Router(const RouteParams& params, const std::vector<float>& correction) : p_(params), correction_(correction) {}

    void route(const std::vector<float>& logits, std::vector<float>& weights) const {
        std::fill(weights.begin(), weights.end(), 0.0F);
        const std::vector<double> values(logits.begin(), logits.end());
        std::vector<double> chosen_weights;
        std::vector<std::size_t> chosen;
        if (p_.score == RouterScore::sparse_mixer) {
            mix_sparsely(values, chosen, chosen_weights);
        } else {
            choose(values, chosen, chosen_weights);
        }
        const double sum = std::accumulate(chosen_weights.begin(), chosen_weights.end(), 0.0);
        const double factor = p_.scale / (p_.normalise ? sum + 1e-20 : 1.0);
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            weights[chosen[i]] = static_cast<float>(chosen_weights[i] * factor);
        }
    }

private:
    void choose(const std::vector<double>& logits, std::vector<std::size_t>& chosen,
                std::vector<double>& weights) const {
        std::vector<double> scores = logits;
        if (p_.score == RouterScore::softmax) {
            scores = softmax(logits);
        } else if (p_.score == RouterScore::sigmoid) {
            std::transform(logits.begin(), logits.end(), scores.begin(),
                           [](double x) { return 1 / (1 + std::exp(-x)); });
        }
        std::vector<double> choice = scores;
        for (std::size_t x = 0; x < correction_.size(); ++x) {
            choice[x] += static_cast<double>(correction_[x]);
        }
        if (p_.groups > 1) {
            limit_groups(choice);
        }
        chosen = largest(choice, p_.top_k);
        for (const std::size_t x : chosen) {
            weights.push_back(scores[x]);
        }
        if (p_.score == RouterScore::top_softmax) {
            weights = softmax(weights);
        }
    }

    void limit_groups(std::vector<double>& choice) const {
        const std::size_t width = choice.size() / static_cast<std::size_t>(p_.groups);
        std::vector<double> group_scores;
        for (std::size_t first = 0; first < choice.size(); first += width) {
            std::vector<double> group(choice.begin() + static_cast<std::ptrdiff_t>(first),
                                      choice.begin() + static_cast<std::ptrdiff_t>(first + width));
            std::sort(group.rbegin(), group.rend());
            const bool two = p_.group_score == GroupScore::top_two_sum && width > 1;
            group_scores.push_back(two ? group[0] + group[1] : group[0]);
        }
        const std::vector<std::size_t> best = largest(group_scores, p_.group_top_k);
        for (std::size_t x = 0; x < choice.size(); ++x) {
            if (std::find(best.begin(), best.end(), x / width) == best.end()) {
                choice[x] = minus_infinity;
            }
        }
    }

    void mix_sparsely(const std::vector<double>& logits, std::vector<std::size_t>& chosen,
                      std::vector<double>& weights) const {
        std::vector<double> left = logits;
        for (std::int64_t k = 0; k < p_.top_k; ++k) {
            const std::size_t best = largest(left, 1).front();
            std::vector<double> near = left;
            for (std::size_t x = 0; x < near.size(); ++x) {
                const double reach = 2.0 * p_.jitter * std::max(std::abs(logits[x]), left[best]);
                if (left[best] - logits[x] > reach) {
                    near[x] = minus_infinity;
                }
            }
            chosen.push_back(best);
            weights.push_back(softmax(near)[best]);
            left[best] = minus_infinity;
        }
    }

    const RouteParams& p_;
    const std::vector<float>& correction_;
};

void check_route(const ConstView& logits, const ConstView& correction, const RouteParams& p, const View& routing) {
    check_float("route", "logits", logits.dtype);
    check_dtype("route", "routing", routing.dtype, tensor::DType::f32);
    check_shape("route", "routing", routing.shape, logits.shape);
    if (logits.shape.empty()) {
        reject("route", "logits need at least one dimension");
    }
    const std::int64_t experts = logits.shape.back();
    if (!absent(correction)) {
        check_float("route", "correction", correction.dtype);
        check_shape("route", "correction", correction.shape, {experts});
    }
    if (p.groups < 1 || experts % p.groups != 0 || p.group_top_k < 1 || p.group_top_k > p.groups) {
        reject("route", fmt::format("{} of {} groups of {} experts", p.group_top_k, p.groups, experts));
    }
    if (p.top_k < 1 || p.top_k > experts / p.groups * p.group_top_k) {
        reject("route", fmt::format("{} of {} experts", p.top_k, experts / p.groups * p.group_top_k));
    }
}

}  // namespace

void ReferenceKernels::route(ConstView logits, ConstView correction, const RouteParams& params, View routing) const {
    check_route(logits, correction, params, routing);
    const std::int64_t experts = logits.shape.back();
    std::vector<float> bias(absent(correction) ? 0 : static_cast<std::size_t>(experts));
    load_floats(correction, 0, static_cast<std::int64_t>(bias.size()), bias.data());
    const Router router(params, bias);
    std::vector<float> row(static_cast<std::size_t>(experts));
    std::vector<float> weights(row.size());
    for (std::int64_t r = 0; r < leading_count(logits.shape); ++r) {
        load_floats(logits, r * experts, experts, row.data());
        router.route(row, weights);
        store_floats(weights.data(), experts, routing, r * experts);
    }
}

}  // namespace shardplan::kernels
