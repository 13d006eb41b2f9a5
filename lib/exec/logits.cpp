#include "exec/logits.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace shardplan::exec {
namespace {

using base::Interval;

/// The three ranges, then the values as f32; empty for later replicas.
std::string message_of(const LogitsBlock& block) {
    if (!block.first_replica) {
        return {};
    }
    const std::int64_t rows = block.ranges[0].size() * block.ranges[1].size();
    const std::int64_t width = block.width();
    const std::int64_t stride = block.ranges[2].size();
    const std::int64_t count = rows * width;
    const std::size_t header = 3 * sizeof(Interval);
    std::string text(header + static_cast<std::size_t>(count) * sizeof(float), '\0');
    std::vector<Interval> ranges = block.ranges;
    ranges[2].end = ranges[2].begin + width;
    std::memcpy(text.data(), ranges.data(), header);
    char* out = text.data() + header;
    for (std::int64_t i = 0; i < count; ++i, out += sizeof(float)) {
        const std::int64_t at = i / width * stride + i % width;
        const float value = block.values.dtype == tensor::DType::f32
                                ? block.values.as<float>()[at]
                                : tensor::float_from_bf16(block.values.as<std::uint16_t>()[at]);
        std::memcpy(out, &value, sizeof value);
    }
    return text;
}

/// Puts the rows where their tokens stand in the sequence.
void place(const std::string& message, const plan::TokenOrder& order, FloatTensor& whole) {
    Interval ranges[3];
    std::memcpy(ranges, message.data(), sizeof ranges);
    const char* source = message.data() + sizeof ranges;
    const auto row_bytes = static_cast<std::size_t>(ranges[2].size()) * sizeof(float);
    for (std::int64_t b = ranges[0].begin; b < ranges[0].end; ++b) {
        for (std::int64_t s = ranges[1].begin; s < ranges[1].end; ++s) {
            const std::int64_t row = (b * whole.shape[1] + order.position(s)) * whole.shape[2] + ranges[2].begin;
            std::memcpy(whole.values.data() + row, source, row_bytes);
            source += row_bytes;
        }
    }
}

}  // namespace

std::string logits_part(const Executor& executor) {
    return message_of(executor.logits());
}

FloatTensor gather_logits(comm::World& world, const plan::Plan& plan, const Executor& executor) {
    return gather_logits(world, plan, logits_part(executor));
}

FloatTensor gather_logits(comm::World& world, const plan::Plan& plan, const std::string& own_part) {
    const std::vector<std::string> messages = world.gather(own_part);
    FloatTensor whole;
    if (world.rank() != 0) {
        return whole;
    }
    const plan::BlockPlan& head = plan.blocks[static_cast<std::size_t>(plan.sequence.back().block)];
    whole.shape = head.values[static_cast<std::size_t>(head.output)].shape;
    whole.shape[2] = plan.graph.model.outputs();  // without the padding
    whole.values.resize(static_cast<std::size_t>(tensor::element_count(whole.shape)));
    std::size_t received = 0;
    for (const std::string& message : messages) {
        if (!message.empty()) {
            received += message.size() - 3 * sizeof(Interval);
            place(message, plan.token_order, whole);
        }
    }
    if (received != whole.values.size() * sizeof(float)) {
        throw std::logic_error("the ranks' parts of the logits do not tile them");
    }
    return whole;
}

FloatTensor tokens_of(const FloatTensor& x, std::span<const std::int64_t> first, std::int64_t count) {
    FloatTensor result{{x.shape[0], count, x.shape[2]}, {}};
    result.values.reserve(static_cast<std::size_t>(tensor::element_count(result.shape)));
    for (std::int64_t b = 0; b < x.shape[0]; ++b) {
        const std::int64_t row = b * x.shape[1] + first[static_cast<std::size_t>(b)];
        const auto begin = x.values.begin() + static_cast<std::ptrdiff_t>(row * x.shape[2]);
        result.values.insert(result.values.end(), begin, begin + static_cast<std::ptrdiff_t>(count * x.shape[2]));
    }
    return result;
}

void put_tokens(const FloatTensor& x, std::int64_t first, FloatTensor& whole, std::int64_t first_sequence) {
    const auto row = static_cast<std::ptrdiff_t>(x.shape[1] * x.shape[2]);
    for (std::int64_t b = 0; b < x.shape[0]; ++b) {
        std::copy_n(x.values.begin() + b * row, row,
                    whole.values.begin() +
                        static_cast<std::ptrdiff_t>(((first_sequence + b) * whole.shape[1] + first) * whole.shape[2]));
    }
}

}  // namespace shardplan::exec
