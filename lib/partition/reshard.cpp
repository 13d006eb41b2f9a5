#include "partition/reshard.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "partition/reshard_moves.h"

namespace shardplan::partition {
namespace {

struct LayoutHash {
    std::size_t operator()(const Layout& layout) const { return hash_value(layout); }
};

struct PairHash {
    std::size_t operator()(const std::pair<Layout, Layout>& pair) const {
        return hash_value(pair.first) * 31 + hash_value(pair.second);
    }
};

/// Neighbouring slices of one dimension are one slice over the longer list of axes.
void merge_slices(std::vector<ReshardStep>& steps) {
    std::vector<ReshardStep> merged;
    for (const ReshardStep& step : steps) {
        const bool joins = !merged.empty() && step.kind == mesh::CollectiveKind::slice &&
                           merged.back().kind == mesh::CollectiveKind::slice && merged.back().dim == step.dim;
        if (joins) {
            for (int i = 0; i < step.axes.size(); ++i) {
                merged.back().axes.push_back(step.axes[i]);
            }
            merged.back().after = step.after;
        } else {
            merged.push_back(step);
        }
    }
    steps = std::move(merged);
}

struct Node {
    double cost = 0.0;
    int collectives = 0;
    int parent = -1;
    ReshardStep step;
    bool done = false;
};

/// Uniform-cost search; the node order breaks remaining ties, so results do not depend on hashing.
class Search {
public:
    Search(const mesh::Mesh& mesh, const Layout& from, const Layout& to) : mesh_(mesh), to_(to) {
        add(from, 0.0, 0, -1, ReshardStep{.kind = mesh::CollectiveKind::slice, .axes = {}, .after = from});
    }

    /// Settles at most `budget` layouts and takes what it used from it; without a result when that was not enough.
    std::optional<ReshardPath> run(std::int64_t& budget) {
        while (!queue_.empty() && budget > 0) {
            const auto [cost, collectives, index] = queue_.top();
            queue_.pop();
            Node& node = nodes_[static_cast<std::size_t>(index)];
            if (node.done || cost != node.cost || collectives != node.collectives) {
                continue;
            }
            node.done = true;
            --budget;
            const Layout current = node.step.after;
            if (current == to_) {
                return trace(index);
            }
            reshard_moves(mesh_, current, to_, moves_);
            for (const Move& move : moves_) {
                const int extra = move.step.kind == mesh::CollectiveKind::slice ? 0 : 1;
                add(move.step.after, cost + move.wire_per_byte, collectives + extra, index, move.step);
            }
        }
        return std::nullopt;  // the budget: gathering everything and slicing always leads to the target
    }

private:
    void add(const Layout& layout, double cost, int collectives, int parent, const ReshardStep& step) {
        const auto [it, fresh] = index_.try_emplace(layout, static_cast<int>(nodes_.size()));
        if (fresh) {
            nodes_.push_back({cost, collectives, parent, step, false});
        } else {
            Node& node = nodes_[static_cast<std::size_t>(it->second)];
            if (node.done || std::tie(cost, collectives) >= std::tie(node.cost, node.collectives)) {
                return;
            }
            node = {cost, collectives, parent, step, false};
        }
        queue_.emplace(cost, collectives, it->second);
    }

    ReshardPath trace(int index) const {
        ReshardPath path;
        const Node& last = nodes_[static_cast<std::size_t>(index)];
        path.wire_per_byte = last.cost;
        path.collectives = last.collectives;
        for (int i = index; nodes_[static_cast<std::size_t>(i)].parent >= 0;
             i = nodes_[static_cast<std::size_t>(i)].parent) {
            path.steps.push_back(nodes_[static_cast<std::size_t>(i)].step);
        }
        std::reverse(path.steps.begin(), path.steps.end());
        merge_slices(path.steps);
        return path;
    }

    using Entry = std::tuple<double, int, int>;
    const mesh::Mesh& mesh_;
    Layout to_;
    std::vector<Move> moves_;
    std::vector<Node> nodes_;
    std::unordered_map<Layout, int, LayoutHash> index_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// Sums, gathers what lies differently, cuts as wanted: a path that always exists and needs no search.
ReshardPath direct_path(const mesh::Mesh& mesh, const Layout& from, const Layout& to) {
    ReshardPath path;
    Layout current = from;
    const auto rank_of = [&](const ReshardStep& step) {
        switch (step.kind) {
            case mesh::CollectiveKind::all_reduce: return step.after.pending == to.pending ? 3 : 0;
            case mesh::CollectiveKind::all_gather: return to[step.dim].starts_with(step.after[step.dim]) ? 2 : 0;
            case mesh::CollectiveKind::slice: return to[step.dim].starts_with(step.after[step.dim]) ? 1 : 0;
            default: return 0;
        }
    };
    std::vector<Move> moves;
    while (!(current == to)) {
        reshard_moves(mesh, current, to, moves);
        const auto next = std::max_element(moves.begin(), moves.end(), [&](const Move& a, const Move& b) {
            return rank_of(a.step) < rank_of(b.step);
        });
        path.steps.push_back(next->step);
        path.wire_per_byte += next->wire_per_byte;
        path.collectives += next->step.kind == mesh::CollectiveKind::slice ? 0 : 1;
        current = next->step.after;
    }
    merge_slices(path.steps);
    return path;
}

}  // namespace

struct Resharder::Cache {
    std::int64_t budget = 0;
    std::unordered_map<std::pair<Layout, Layout>, ReshardPath, PairHash> paths;
};

Resharder::Resharder(mesh::Mesh mesh, std::int64_t search_budget)
    : mesh_(std::move(mesh)), cache_(std::make_unique<Cache>()) {
    cache_->budget = search_budget;
}
Resharder::~Resharder() = default;
Resharder::Resharder(Resharder&&) noexcept = default;
Resharder& Resharder::operator=(Resharder&&) noexcept = default;

const ReshardPath* Resharder::path(const Layout& from, const Layout& to) {
    if (!from.pending.includes(to.pending)) {
        return nullptr;
    }
    const auto it = cache_->paths.find({from, to});
    if (it != cache_->paths.end()) {
        return &it->second;
    }
    std::optional<ReshardPath> found;
    if (from == to) {
        found.emplace();
    } else if (!(found = Search(mesh_, from, to).run(cache_->budget))) {
        found = direct_path(mesh_, from, to);
    }
    return &cache_->paths.emplace(std::pair{from, to}, std::move(*found)).first->second;
}

double least_wire_per_byte(const Layout& from, const Layout& to, const mesh::Mesh& mesh) {
    const auto part = [&](const Layout& layout) { return 1.0 / static_cast<double>(shard_count(layout, mesh)); };
    return std::max(0.0, part(to) - part(from));
}

std::int64_t permute_source(const Layout& from, const Layout& to, const mesh::Mesh& mesh, std::int64_t rank) {
    std::int64_t source = rank;
    for (int d = 0; d < from.rank; ++d) {
        source = mesh.rank_at(source, from[d], mesh.position(rank, to[d]));
    }
    return source;
}

std::int64_t permute_movers(const Layout& from, const ReshardStep& step, const mesh::Mesh& mesh) {
    std::int64_t movers = 0;
    for (std::int64_t position = 0; position < mesh.size(step.axes); ++position) {
        const std::int64_t rank = mesh.rank_at(0, step.axes, position);
        movers += permute_source(from, step.after, mesh, rank) != rank ? 1 : 0;
    }
    return movers;
}

}  // namespace shardplan::partition
