// Executes reshard steps on what every rank holds, as sets: for each dimension the global index of each local index,
// and the partial sums that went into the values. Every collective is done as its definition says, and complains where
// the members of a group do not hold what it needs.
#pragma once

#include <bitset>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "partition/layout.h"
#include "partition/reshard.h"

namespace shardplan::test {

/// What one rank holds.
struct Held {
    std::vector<std::vector<std::int64_t>> index;  ///< per dimension: local index -> global index
    std::bitset<256> summed;                       ///< the contributions that are already in the values
    friend bool operator==(const Held&, const Held&) = default;
};

class ReshardSimulator {
public:
    ReshardSimulator(const mesh::Mesh& mesh, const tensor::Shape& shape, const partition::Layout& start)
        : mesh_(mesh), shape_(shape), contributions_(in_order(start.pending)), layout_(start), held_(expected(start)) {}

    const std::vector<Held>& held() const { return held_; }

    /// What the ranks must hold in `layout`: their block, summed over all contributions but those of other ranks along
    /// the axes that are still pending.
    std::vector<Held> expected(const partition::Layout& layout) const {
        std::vector<Held> all(static_cast<std::size_t>(mesh_.device_count()));
        for (std::int64_t rank = 0; rank < mesh_.device_count(); ++rank) {
            Held& held = all[static_cast<std::size_t>(rank)];
            for (const base::Interval range : local_ranges(layout, shape_, mesh_, rank)) {
                held.index.emplace_back();
                for (std::int64_t i = range.begin; i < range.end; ++i) {
                    held.index.back().push_back(i);
                }
            }
            const mesh::AxisList pending = in_order(layout.pending);
            for (const std::int64_t other : mesh_.group(rank, contributions_)) {
                if (mesh_.position(other, pending) == mesh_.position(rank, pending)) {
                    held.summed.set(static_cast<std::size_t>(mesh_.position(other, contributions_)));
                }
            }
        }
        return all;
    }

    void apply(const partition::ReshardStep& step) {
        std::vector<Held> next(held_.size());
        for (const std::vector<std::int64_t>& group : mesh_.groups(step.axes)) {
            for (std::size_t position = 0; position < group.size(); ++position) {
                next[static_cast<std::size_t>(group[position])] = result(step, group, position);
            }
        }
        held_ = std::move(next);
        layout_ = step.after;
    }

private:
    using Ranks = std::vector<std::int64_t>;

    mesh::AxisList in_order(mesh::AxisSet set) const {
        mesh::AxisList list;
        for (int i = 0; i < mesh_.axis_count(); ++i) {
            const mesh::AxisId axis{static_cast<std::uint8_t>(i)};
            if (set.contains(axis)) {
                list.push_back(axis);
            }
        }
        return list;
    }

    const Held& at(std::int64_t rank) const { return held_[static_cast<std::size_t>(rank)]; }

    static void require(bool holds, const char* what) {
        if (!holds) {
            throw std::logic_error(what);
        }
    }

    Held result(const partition::ReshardStep& step, const Ranks& group, std::size_t position) const {
        const auto dim = static_cast<std::size_t>(step.dim);
        Held held = at(group[position]);
        switch (step.kind) {
            case mesh::CollectiveKind::all_gather: gather(held, group, dim); break;
            case mesh::CollectiveKind::reduce_scatter:
                reduce(held, group);
                cut(held.index[dim], group.size(), position);
                break;
            case mesh::CollectiveKind::all_reduce: reduce(held, group); break;
            case mesh::CollectiveKind::all_to_all:
                gather(held, group, static_cast<std::size_t>(step.concat_dim));
                cut(held.index[dim], group.size(), position);
                break;
            case mesh::CollectiveKind::permute: {
                const std::int64_t source = permute_source(layout_, step.after, mesh_, group[position]);
                require(std::find(group.begin(), group.end(), source) != group.end(), "source outside of the group");
                held = at(source);
                break;
            }
            case mesh::CollectiveKind::slice: cut(held.index[dim], group.size(), position); break;
            case mesh::CollectiveKind::all_reduce_max:
            case mesh::CollectiveKind::all_to_all_v:
            case mesh::CollectiveKind::send: require(false, "no step of a reshard");
        }
        return held;
    }

    /// All-to-all is this followed by a cut of another dimension: the members may differ in `dim` only.
    void gather(Held& held, const Ranks& group, std::size_t dim) const {
        std::vector<std::int64_t> joined;
        for (const std::int64_t rank : group) {
            const Held& other = at(rank);
            require(other.summed == held.summed, "blocks of different sums");
            for (std::size_t d = 0; d < held.index.size(); ++d) {
                require(d == dim || other.index[d] == held.index[d], "blocks of different ranges");
            }
            joined.insert(joined.end(), other.index[dim].begin(), other.index[dim].end());
        }
        held.index[dim] = joined;
    }

    void reduce(Held& held, const Ranks& group) const {
        std::bitset<256> sum;
        for (const std::int64_t rank : group) {
            require(at(rank).index == held.index, "sum over different blocks");
            require((sum & at(rank).summed).none(), "a contribution is added twice");
            sum |= at(rank).summed;
        }
        held.summed = sum;
    }

    static void cut(std::vector<std::int64_t>& index, std::size_t parts, std::size_t position) {
        require(index.size() % parts == 0, "not a multiple");
        const auto length = static_cast<std::ptrdiff_t>(index.size() / parts);
        const auto begin = index.begin() + static_cast<std::ptrdiff_t>(position) * length;
        index = std::vector<std::int64_t>(begin, begin + length);
    }

    const mesh::Mesh& mesh_;
    const tensor::Shape& shape_;
    mesh::AxisList contributions_;
    partition::Layout layout_;
    std::vector<Held> held_;
};

}  // namespace shardplan::test
