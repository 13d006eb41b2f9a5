#include "partition/reshard_moves.h"

namespace shardplan::partition {

using mesh::AxisId;
using mesh::AxisList;
using mesh::AxisSet;
using mesh::CollectiveKind;

namespace {

class Moves {
public:
    Moves(const mesh::Mesh& mesh, const Layout& current, const Layout& target, std::vector<Move>& moves)
        : mesh_(mesh),
          current_(current),
          target_(target),
          used_(current.sharded() | current.pending),
          local_(1.0 / static_cast<double>(shard_count(current, mesh))),
          moves_(moves) {}

    void all() {
        moves_.clear();
        for (int d = 0; d < current_.rank; ++d) {
            gathers(d);
            slices(d);
            reduce_scatters(d);
            reorder(d);
        }
        all_reduces();
        permute_to_target();
    }

private:
    int common_prefix(int d) const {
        int n = 0;
        while (n < current_[d].size() && n < target_[d].size() && current_[d][n] == target_[d][n]) {
            ++n;
        }
        return n;
    }

    void add(CollectiveKind kind, const AxisList& axes, int dim, int concat_dim, const Layout& after, double wire) {
        moves_.push_back({{kind, axes, dim, concat_dim, after}, wire});
    }

    double size(const AxisList& axes) const { return static_cast<double>(mesh_.size(axes)); }

    /// All-gathers of a suffix of dimension d, and exchanges of that suffix for the next axes of another dimension.
    void gathers(int d) {
        for (int keep = common_prefix(d); keep < current_[d].size(); ++keep) {
            const AxisList axes = current_[d].suffix_from(keep);
            Layout after = current_;
            after[d] = current_[d].prefix(keep);
            add(CollectiveKind::all_gather, axes, d, d, after, (size(axes) - 1.0) * local_);
            for (int other = 0; other < current_.rank; ++other) {
                exchange(d, other, axes, after);
            }
        }
    }

    void exchange(int d, int other, const AxisList& axes, Layout after) {
        if (other == d || !target_[other].starts_with(current_[other]) ||
            !target_[other].suffix_from(current_[other].size()).starts_with(axes)) {
            return;
        }
        for (int i = 0; i < axes.size(); ++i) {
            after[other].push_back(axes[i]);
        }
        add(CollectiveKind::all_to_all, axes, other, d, after, (size(axes) - 1.0) / size(axes) * local_);
    }

    /// Slices over the next axis that dimension d needs, when that axis is free.
    void slices(int d) {
        const bool in_order = target_[d].starts_with(current_[d]);
        if (!in_order && !target_[d].set().includes(current_[d].set())) {
            return;
        }
        for (int i = 0; i < target_[d].size(); ++i) {
            const AxisId axis = target_[d][i];
            if (current_[d].set().contains(axis)) {
                continue;
            }
            if (!used_.contains(axis)) {
                Layout after = current_;
                after[d].push_back(axis);
                add(CollectiveKind::slice, AxisList{axis}, d, d, after, 0.0);
            }
            return;
        }
    }

    void reduce_scatters(int d) {
        if (!target_[d].starts_with(current_[d])) {
            return;
        }
        AxisList run;
        Layout after = current_;
        for (int i = current_[d].size(); i < target_[d].size(); ++i) {
            const AxisId axis = target_[d][i];
            if (!current_.pending.contains(axis)) {
                return;
            }
            run.push_back(axis);
            after[d].push_back(axis);
            after.pending.erase(axis);
            add(CollectiveKind::reduce_scatter, run, d, d, after, (size(run) - 1.0) / size(run) * local_);
        }
    }

    void all_reduces() {
        const AxisSet extra = current_.pending - target_.pending;
        const AxisSet nowhere = extra - target_.sharded();
        all_reduce(extra);
        if (!(nowhere == extra)) {
            all_reduce(nowhere);
        }
    }

    void all_reduce(AxisSet axes) {
        if (axes.empty()) {
            return;
        }
        Layout after = current_;
        after.pending = current_.pending - axes;
        const AxisList list = in_mesh_order(axes);
        add(CollectiveKind::all_reduce, list, 0, 0, after, 2.0 * (size(list) - 1.0) / size(list) * local_);
    }

    /// Puts the axes that dimension d must keep first: ('a','b') -> ('b','a').
    void reorder(int d) {
        const bool keeps_target = current_[d].set().includes(target_[d].set());
        if (!keeps_target || target_[d].empty() || current_[d].starts_with(target_[d])) {
            return;
        }
        Layout after = current_;
        after[d] = target_[d];
        for (int i = 0; i < current_[d].size(); ++i) {
            if (!target_[d].set().contains(current_[d][i])) {
                after[d].push_back(current_[d][i]);
            }
        }
        permute(after);
    }

    /// When every dimension is cut into the target's number of parts, whole blocks change hands.
    void permute_to_target() {
        if (!(current_.pending == target_.pending) || current_ == target_) {
            return;
        }
        for (int d = 0; d < current_.rank; ++d) {
            if (mesh_.size(current_[d]) != mesh_.size(target_[d])) {
                return;
            }
        }
        permute(target_);
    }

    void permute(const Layout& after) {
        AxisSet axes;
        for (int d = 0; d < current_.rank; ++d) {
            if (!(current_[d] == after[d])) {
                axes = axes | current_[d].set() | after[d].set();
            }
        }
        add(CollectiveKind::permute, in_mesh_order(axes), 0, 0, after, local_);
    }

    AxisList in_mesh_order(AxisSet axes) const {
        AxisList list;
        for (int i = 0; i < mesh_.axis_count(); ++i) {
            const AxisId id{static_cast<std::uint8_t>(i)};
            if (axes.contains(id)) {
                list.push_back(id);
            }
        }
        return list;
    }

    const mesh::Mesh& mesh_;
    const Layout& current_;
    const Layout& target_;
    AxisSet used_;
    double local_;
    std::vector<Move>& moves_;
};

}  // namespace

void reshard_moves(const mesh::Mesh& mesh, const Layout& current, const Layout& target, std::vector<Move>& moves) {
    Moves(mesh, current, target, moves).all();
}

}  // namespace shardplan::partition
