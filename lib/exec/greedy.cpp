#include "exec/greedy.h"

#include <cstring>
#include <limits>
#include <string>

#include "tensor/dtype.h"

namespace shardplan::exec {
namespace {

struct Candidate {
    std::int64_t sequence = 0;
    std::int64_t id = 0;
    double logit = -std::numeric_limits<double>::infinity();

    bool better_than(const Candidate& other) const {
        return logit > other.logit || (logit == other.logit && id < other.id);
    }
};

float value_at(const tensor::ConstView& view, std::int64_t i) {
    return view.dtype == tensor::DType::f32 ? view.as<float>()[i]
                                            : tensor::float_from_bf16(view.as<std::uint16_t>()[i]);
}

/// One per sequence of the block; later replicas have nothing to say.
std::vector<Candidate> local_candidates(const LogitsBlock& block) {
    std::vector<Candidate> result;
    if (!block.first_replica || block.width() == 0) {
        return result;
    }
    const std::int64_t stride = block.ranges[2].size();
    for (std::int64_t row = 0; row < block.ranges[0].size(); ++row) {
        Candidate best{block.ranges[0].begin + row, block.ranges[2].begin};
        for (std::int64_t i = 0; i < block.width(); ++i) {
            const Candidate here{best.sequence, block.ranges[2].begin + i, value_at(block.values, row * stride + i)};
            if (here.better_than(best)) {
                best = here;
            }
        }
        result.push_back(best);
    }
    return result;
}

std::string bytes_of(const auto& values) {
    std::string bytes(values.size() * sizeof(values[0]), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

}  // namespace

std::vector<std::int32_t> greedy_tokens(comm::World& world, const Executor& executor, std::int64_t batch) {
    const std::vector<std::string> parts = world.gather(bytes_of(local_candidates(executor.logits())));
    std::vector<Candidate> best(static_cast<std::size_t>(batch), {0, std::numeric_limits<std::int32_t>::max()});
    for (const std::string& part : parts) {
        std::vector<Candidate> candidates(part.size() / sizeof(Candidate));
        std::memcpy(candidates.data(), part.data(), part.size());
        for (const Candidate& candidate : candidates) {
            Candidate& current = best[static_cast<std::size_t>(candidate.sequence)];
            current = candidate.better_than(current) ? candidate : current;
        }
    }
    std::vector<std::int32_t> ids;
    for (const Candidate& candidate : best) {
        ids.push_back(static_cast<std::int32_t>(candidate.id));
    }
    std::string decided = bytes_of(ids);
    world.broadcast(decided);
    std::memcpy(ids.data(), decided.data(), decided.size());
    return ids;
}

std::int32_t greedy_token(std::span<const float> logits) {
    Candidate best;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const Candidate here{0, static_cast<std::int64_t>(i), logits[i]};
        best = here.better_than(best) ? here : best;
    }
    return static_cast<std::int32_t>(best.id);
}

}  // namespace shardplan::exec
