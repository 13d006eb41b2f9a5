// A straightforward DeepSeek in double, token by token and head by head, written from the published description and
// independent of the planner's graph: whole checkpoint tensors in, logits out. No cache, no parallelism.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "exec/checkpoint_weights.h"
#include "exec/tokens.h"

namespace shardplan::test {

class NaiveDeepseek {
public:
    using Row = std::vector<double>;
    using Rows = std::vector<Row>;

    NaiveDeepseek(const tensor::Checkpoint& checkpoint, const model::ModelSpec& model)
        : weights_(checkpoint, model), m_(model), a_(model.attention.latent) {}

    /// Of the tokens of one sequence: [token][vocabulary].
    Rows logits(const std::vector<std::int32_t>& tokens) const {
        const Row table = read("model.embed_tokens.weight", {m_.vocab, m_.hidden});
        Rows x;
        for (const std::int32_t token : tokens) {
            const auto begin = table.begin() + token * m_.hidden;
            x.emplace_back(begin, begin + m_.hidden);
        }
        for (std::size_t layer = 0; layer < m_.layers.size(); ++layer) {
            const std::string prefix = "model.layers." + std::to_string(layer) + ".";
            add(x, attention(norm(x, prefix + "input_layernorm", m_.norm.eps), prefix + "self_attn."));
            const Rows normed = norm(x, prefix + "post_attention_layernorm", m_.norm.eps);
            add(x, m_.layers[layer].moe ? experts(normed, prefix + "mlp.")
                                        : mlp(normed, prefix + "mlp.", m_.mlp.intermediate));
        }
        return linear(norm(x, "model.norm", m_.norm.eps), "lm_head", m_.vocab);
    }

private:
    Row read(const std::string& name, const tensor::Shape& shape) const {
        model::Parameter whole;
        whole.name = name;
        whole.shape = whole.stored_shape = shape;
        std::vector<float> values(static_cast<std::size_t>(tensor::element_count(shape)));
        weights_.fill(whole, -1, exec::whole_ranges(shape),
                      {reinterpret_cast<std::byte*>(values.data()), tensor::DType::f32, shape});
        return {values.begin(), values.end()};
    }

    static void add(Rows& x, const Rows& y) {
        for (std::size_t t = 0; t < x.size(); ++t) {
            std::transform(x[t].begin(), x[t].end(), y[t].begin(), x[t].begin(), std::plus<>());
        }
    }

    Rows norm(const Rows& x, const std::string& name, double eps) const {
        const Row weight = read(name + ".weight", {std::ssize(x.front())});
        Rows y = x;
        for (Row& row : y) {
            const double mean =
                std::inner_product(row.begin(), row.end(), row.begin(), 0.0) / static_cast<double>(row.size());
            for (std::size_t i = 0; i < row.size(); ++i) {
                row[i] *= weight[i] / std::sqrt(mean + eps);
            }
        }
        return y;
    }

    Rows linear(const Rows& x, const std::string& name, std::int64_t outputs, bool biased = false) const {
        const std::int64_t inputs = std::ssize(x.front());
        const Row w = read(name + ".weight", {outputs, inputs});
        const Row bias = biased ? read(name + ".bias", {outputs}) : Row(static_cast<std::size_t>(outputs), 0.0);
        Rows y;
        for (const Row& row : x) {
            Row& out = y.emplace_back(bias);
            for (std::size_t o = 0; o < out.size(); ++o) {
                out[o] +=
                    std::inner_product(row.begin(), row.end(), w.begin() + static_cast<std::int64_t>(o) * inputs, 0.0);
            }
        }
        return y;
    }

    /// Pairs (0, 1), (2, 3) ... of the dimensions from `first` on.
    void rotate(Row& row, std::int64_t first, std::size_t position) const {
        for (std::int64_t i = 0; i < a_.rope_dim / 2; ++i) {
            const auto frequency = m_.attention.rope.inverse_frequencies[static_cast<std::size_t>(i)];
            const double angle = static_cast<double>(position) * static_cast<double>(frequency);
            const double cos = std::cos(angle) * m_.attention.rope.attention_factor;
            const double sin = std::sin(angle) * m_.attention.rope.attention_factor;
            double& a = row[static_cast<std::size_t>(first + 2 * i)];
            double& b = row[static_cast<std::size_t>(first + 2 * i + 1)];
            const double turned = a * cos - b * sin;
            b = b * cos + a * sin;
            a = turned;
        }
    }

    static Row part(const Row& row, std::int64_t first, std::int64_t count) {
        return {row.begin() + first, row.begin() + first + count};
    }

    Rows attention(const Rows& x, const std::string& prefix) const {
        const std::int64_t width = a_.nope_dim + a_.rope_dim;
        const bool bias = a_.down_bias;
        Rows q;
        if (a_.q_rank > 0) {
            const Rows latent = norm(linear(x, prefix + "q_a_proj", a_.q_rank, bias), prefix + "q_a_layernorm", 1e-6);
            q = linear(latent, prefix + "q_b_proj", m_.attention.heads * width);
        } else {
            q = linear(x, prefix + "q_proj", m_.attention.heads * width);
        }
        const Rows compressed = linear(x, prefix + "kv_a_proj_with_mqa", a_.kv_rank + a_.rope_dim, bias);
        Rows latent;
        Rows shared;
        for (std::size_t t = 0; t < x.size(); ++t) {
            latent.push_back(part(compressed[t], 0, a_.kv_rank));
            shared.push_back(part(compressed[t], a_.kv_rank, a_.rope_dim));
            rotate(shared[t], 0, t);
            for (std::int64_t h = 0; h < m_.attention.heads; ++h) {
                rotate(q[t], h * width + a_.nope_dim, t);
            }
        }
        const Rows made = linear(norm(latent, prefix + "kv_a_layernorm", 1e-6), prefix + "kv_b_proj",
                                 m_.attention.heads * (a_.nope_dim + a_.value_dim));
        Rows heads;
        for (std::size_t t = 0; t < x.size(); ++t) {
            Row& out = heads.emplace_back();
            for (std::int64_t h = 0; h < m_.attention.heads; ++h) {
                const Row one = head(part(q[t], h * width, width), made, shared, h, t);
                out.insert(out.end(), one.begin(), one.end());
            }
        }
        return linear(heads, prefix + "o_proj", m_.hidden, bias);
    }

    /// One query of one head over the tokens up to `last`.
    Row head(const Row& q, const Rows& made, const Rows& shared, std::int64_t h, std::size_t last) const {
        const std::int64_t stride = a_.nope_dim + a_.value_dim;
        Row weights;
        for (std::size_t t = 0; t <= last; ++t) {
            Row key = part(made[t], h * stride, a_.nope_dim);
            key.insert(key.end(), shared[t].begin(), shared[t].end());
            weights.push_back(std::exp(std::inner_product(q.begin(), q.end(), key.begin(), 0.0) * scale()));
        }
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        Row out(static_cast<std::size_t>(a_.value_dim), 0.0);
        for (std::size_t t = 0; t <= last; ++t) {
            const Row value = part(made[t], h * stride + a_.nope_dim, a_.value_dim);
            for (std::size_t i = 0; i < out.size(); ++i) {
                out[i] += weights[t] / sum * value[i];
            }
        }
        return out;
    }

    double scale() const {
        const double magnitude =
            m_.model_type == "deepseek_v3" ? 0.1 * 0.6 * std::log(4.0) + 1.0 : 1.0;  // of the config
        return magnitude * magnitude / std::sqrt(static_cast<double>(a_.nope_dim + a_.rope_dim));
    }

    Rows mlp(const Rows& x, const std::string& prefix, std::int64_t intermediate) const {
        Rows gate = linear(x, prefix + "gate_proj", intermediate);
        const Rows up = linear(x, prefix + "up_proj", intermediate);
        for (std::size_t t = 0; t < x.size(); ++t) {
            for (std::size_t i = 0; i < gate[t].size(); ++i) {
                gate[t][i] *= up[t][i] / (1.0 + std::exp(-gate[t][i]));
            }
        }
        return linear(gate, prefix + "down_proj", m_.hidden);
    }

    Rows experts(const Rows& x, const std::string& prefix) const {
        const Rows scores = linear(x, prefix + "gate", m_.moe.experts);
        Rows y = mlp(x, prefix + "shared_experts.", m_.moe.shared_intermediate);
        std::vector<Row> weights;
        for (const Row& row : scores) {
            weights.push_back(m_.model_type == "deepseek_v3" ? routed_v3(row, prefix) : routed_v2(row));
        }
        for (std::int64_t e = 0; e < m_.moe.experts; ++e) {
            const Rows out = mlp(x, prefix + "experts." + std::to_string(e) + ".", m_.moe.intermediate);
            for (std::size_t t = 0; t < x.size(); ++t) {
                for (std::size_t i = 0; i < out[t].size(); ++i) {
                    y[t][i] += weights[t][static_cast<std::size_t>(e)] * out[t][i];
                }
            }
        }
        return y;
    }

    /// Which are the `count` best.
    static std::vector<bool> best(const Row& scores, std::int64_t count) {
        std::vector<bool> chosen(scores.size(), false);
        for (std::int64_t n = 0; n < count; ++n) {
            std::size_t top = scores.size();
            for (std::size_t i = 0; i < scores.size(); ++i) {
                if (!chosen[i] && (top == scores.size() || scores[i] > scores[top])) {
                    top = i;
                }
            }
            chosen[top] = true;
        }
        return chosen;
    }

    /// Greedy: softmax, 3 of 8, times 1.5.
    static Row routed_v2(const Row& logits) {
        double sum = 0.0;
        for (const double logit : logits) {
            sum += std::exp(logit);
        }
        const std::vector<bool> chosen = best(logits, 3);
        Row weights(logits.size(), 0.0);
        for (std::size_t e = 0; e < logits.size(); ++e) {
            weights[e] = chosen[e] ? 1.5 * std::exp(logits[e]) / sum : 0.0;
        }
        return weights;
    }

    /// Sigmoid with a correction, two of four groups by the sum of their two experts, 3 of those, times 2.5.
    Row routed_v3(const Row& logits, const std::string& prefix) const {
        const Row bias = read(prefix + "gate.e_score_correction_bias", {8});
        Row scores;
        Row corrected;
        for (std::size_t e = 0; e < 8; ++e) {
            scores.push_back(1.0 / (1.0 + std::exp(-logits[e])));
            corrected.push_back(scores[e] + bias[e]);
        }
        Row groups;
        for (std::size_t g = 0; g < 4; ++g) {
            groups.push_back(corrected[2 * g] + corrected[2 * g + 1]);
        }
        const std::vector<bool> chosen_groups = best(groups, 2);
        for (std::size_t e = 0; e < 8; ++e) {
            corrected[e] = chosen_groups[e / 2] ? corrected[e] : -1e9;
        }
        const std::vector<bool> chosen = best(corrected, 3);
        double sum = 0.0;
        for (std::size_t e = 0; e < 8; ++e) {
            scores[e] = chosen[e] ? scores[e] : 0.0;
            sum += scores[e];
        }
        for (double& score : scores) {
            score *= 2.5 / sum;
        }
        return scores;
    }

    exec::CheckpointWeights weights_;
    model::ModelSpec m_;
    model::LatentSpec a_;
};

}  // namespace shardplan::test
