#include "exec/routing_ties.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace shardplan::exec {
namespace {

std::vector<std::int32_t> chosen_of(const tensor::ConstView& routing, std::int64_t row) {
    const std::int64_t experts = routing.shape.back();
    const float* weights = routing.as<float>() + row * experts;
    std::vector<std::int32_t> result;
    for (std::int64_t x = 0; x < experts; ++x) {
        if (weights[x] != 0.0F) {
            result.push_back(static_cast<std::int32_t>(x));
        }
    }
    return result;
}

float load(const tensor::View& x, std::int64_t i) {
    return x.dtype == tensor::DType::f32 ? x.as<float>()[i] : tensor::float_from_bf16(x.as<std::uint16_t>()[i]);
}

void store(const tensor::View& x, std::int64_t i, float value) {
    if (x.dtype == tensor::DType::f32) {
        x.as<float>()[i] = value;
    } else {
        x.as<std::uint16_t>()[i] = tensor::bf16_from_float(value);
    }
}

double rms_of(const tensor::View& x) {
    double squares = 0.0;
    for (std::int64_t i = 0; i < x.count(); ++i) {
        squares += static_cast<double>(load(x, i)) * load(x, i);
    }
    return std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(1, x.count())));
}

bool contains(const std::vector<std::int32_t>& list, std::int32_t value) {
    return std::binary_search(list.begin(), list.end(), value);
}

/// A token for which both runs chose different experts.
struct Difference {
    std::int64_t row;
    const std::vector<std::int32_t>* wanted;
    std::vector<float> logits;  ///< as they were
};

void move_scores(const tensor::View& logits, const Difference& token, const std::vector<std::int32_t>& own,
                 float step) {
    const std::int64_t experts = logits.shape.back();
    for (std::int64_t x = 0; x < experts; ++x) {
        const auto expert = static_cast<std::int32_t>(x);
        const int direction = (contains(*token.wanted, expert) ? 1 : 0) - (contains(own, expert) ? 1 : 0);
        if (direction != 0) {
            const std::int64_t i = token.row * experts + x;
            store(logits, i, load(logits, i) + static_cast<float>(direction) * step);
        }
    }
}

}  // namespace

void ChosenExperts::add(int layer, const tensor::ConstView& routing,
                        const std::function<std::int64_t(std::int64_t)>& sequence,
                        const std::function<std::int64_t(std::int64_t, std::int64_t)>& position) {
    const std::int64_t tokens = routing.shape[1];
    for (std::int64_t b = 0; b < routing.shape[0]; ++b) {
        for (std::int64_t t = 0; t < tokens; ++t) {
            experts_[{layer, sequence(b), position(b, t)}] = chosen_of(routing, b * tokens + t);
        }
    }
}

const std::vector<std::int32_t>* ChosenExperts::of(int layer, std::int64_t sequence, std::int64_t position) const {
    const auto found = experts_.find({layer, sequence, position});
    return found == experts_.end() ? nullptr : &found->second;
}

std::string ChosenExperts::message() const {
    std::vector<std::int64_t> words;
    for (const auto& [token, experts] : experts_) {
        const auto& [layer, sequence, position] = token;
        words.insert(words.end(), {layer, sequence, position, std::ssize(experts)});
        words.insert(words.end(), experts.begin(), experts.end());
    }
    const auto bytes = std::as_bytes(std::span(words));
    std::string text(bytes.size(), '\0');
    std::transform(bytes.begin(), bytes.end(), text.begin(), [](std::byte byte) { return static_cast<char>(byte); });
    return text;
}

void ChosenExperts::merge(const std::string& message) {
    std::vector<std::int64_t> words(message.size() / sizeof(std::int64_t));
    const auto bytes = std::as_writable_bytes(std::span(words));
    std::transform(message.begin(), message.begin() + std::ssize(bytes), bytes.begin(),
                   [](char byte) { return static_cast<std::byte>(byte); });
    for (std::size_t i = 0; i + 4 <= words.size();) {
        std::vector<std::int32_t>& experts = experts_[{static_cast<int>(words[i]), words[i + 1], words[i + 2]}];
        experts.clear();
        const std::size_t end = i + 4 + static_cast<std::size_t>(words[i + 3]);
        for (i += 4; i < end; ++i) {
            experts.push_back(static_cast<std::int32_t>(words[i]));
        }
    }
}

void RoutingTies::settle(int layer, const tensor::View& logits, const tensor::View& routing,
                         const std::function<void()>& route) {
    const std::int64_t tokens = logits.shape[1];
    const std::int64_t experts = logits.shape.back();
    const auto step = static_cast<float>(width_ / 2.0 * rms_of(logits));  // both scores of a pair move
    std::vector<Difference> differences;
    for (std::int64_t row = 0; row < logits.shape[0] * tokens; ++row) {
        const auto* wanted = chosen_.of(layer, row / tokens, row % tokens);
        const std::vector<std::int32_t> own = chosen_of(routing, row);
        if (wanted == nullptr || *wanted == own) {
            continue;
        }
        Difference& token = differences.emplace_back(Difference{row, wanted, {}});
        for (std::int64_t x = 0; x < experts; ++x) {
            token.logits.push_back(load(logits, row * experts + x));
        }
        move_scores(logits, token, own, step);
    }
    if (differences.empty()) {
        return;
    }
    route();
    bool restored = false;
    for (const Difference& token : differences) {
        if (chosen_of(routing, token.row) == *token.wanted) {
            ++count_;
            continue;
        }
        restored = true;
        for (std::int64_t x = 0; x < experts; ++x) {
            store(logits, token.row * experts + x, token.logits[static_cast<std::size_t>(x)]);
        }
    }
    if (restored) {
        route();
    }
}

}  // namespace shardplan::exec
