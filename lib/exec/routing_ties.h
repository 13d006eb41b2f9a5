// Near ties of routers in bf16. Two orders of summing may choose different experts for a token whose scores are close;
// from there on both results are right, and far apart. So the unsharded run takes over what the sharded run chose, but
// only where rounding can have decided it: when moving the scores in question by no more than rounding does makes the
// router choose so by itself. Everything else it chooses itself, and a wrong choice of the sharded run shows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/interval.h"
#include "tensor/view.h"

namespace shardplan::exec {

/// The experts that tokens chose, by layer, sequence and position.
class ChosenExperts {
public:
    /// routing [b, s, X] f32: the weights of the experts, 0 if not chosen; each row is that of `sequence(row)` at
    /// `position(row, column)`. What is known of a token already is replaced.
    void add(int layer, const tensor::ConstView& routing, const std::function<std::int64_t(std::int64_t)>& sequence,
             const std::function<std::int64_t(std::int64_t, std::int64_t)>& position);
    /// nullptr: not known.
    const std::vector<std::int32_t>* of(int layer, std::int64_t sequence, std::int64_t position) const;

    std::string message() const;
    /// Adds what another rank has.
    void merge(const std::string& message);

private:
    std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<std::int32_t>> experts_;
};

class RoutingTies {
public:
    /// width: how far rounding moves the difference of two scores, as a part of the scores' root mean square.
    RoutingTies(ChosenExperts chosen, double width) : chosen_(std::move(chosen)), width_(width) {}

    /// Of one layer of the unsharded run: logits [b, s, X] that gave `routing`, token s at position s; `route` computes
    /// routing from the logits again.
    void settle(int layer, const tensor::View& logits, const tensor::View& routing, const std::function<void()>& route);

    /// Choices that were taken over.
    std::int64_t count() const { return count_; }

private:
    ChosenExperts chosen_;
    double width_;
    std::int64_t count_ = 0;
};

}  // namespace shardplan::exec
