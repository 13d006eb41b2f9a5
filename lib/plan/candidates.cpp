#include "plan/candidates.h"

#include <algorithm>

#include "plan/kv_heads.h"

namespace shardplan::plan {

using mesh::AxisId;
using mesh::AxisList;
using mesh::AxisSet;
using model::FactorKind;

namespace {

constexpr int nowhere = -1;
constexpr int stays_pending = -2;
constexpr std::size_t most_candidates = 1024;

class Enumeration {
public:
    Enumeration(const model::OpRule& rule, const std::vector<SourceLayout>& sources, AxisSet passable,
                const mesh::Mesh& mesh)
        : rule_(rule), sources_(sources), passable_(passable), mesh_(mesh) {}

    std::vector<Candidate> run() {
        collect_options();
        limit_options();
        choice_.assign(axes_.size(), nowhere);
        choose(0);
        return std::move(result_);
    }

private:
    void collect_options() {
        const AxisSet nontrivial = mesh::nontrivial_axes(mesh_);
        for (int i = 0; i < mesh_.axis_count(); ++i) {
            const AxisId axis{static_cast<std::uint8_t>(i)};
            if (!nontrivial.contains(axis)) {
                continue;
            }
            std::vector<int> options;
            for (const SourceLayout& source : sources_) {
                for (int d = 0; d < source.layout.rank; ++d) {
                    const int factor = (*source.dims)[static_cast<std::size_t>(d)].factor;
                    const bool here = source.layout[d].set().contains(axis) && allows(factor);
                    if (here && std::find(options.begin(), options.end(), factor) == options.end()) {
                        options.push_back(factor);
                    }
                }
            }
            if (passable_.contains(axis)) {
                options.push_back(stays_pending);
            }
            options.push_back(nowhere);
            if (options.size() > 1) {
                axes_.push_back(axis);
                options_.push_back(options);
            }
        }
    }

    /// Far too many axes: the last ones keep their first option and "nowhere" only.
    void limit_options() {
        std::size_t product = 1;
        for (std::vector<int>& options : options_) {
            if (product * options.size() > most_candidates) {
                options = {options.front()};
            }
            product *= options.size();
        }
    }

    bool allows(int factor) const { return rule_.factors[static_cast<std::size_t>(factor)].kind != FactorKind::whole; }

    void choose(std::size_t i) {
        if (i == axes_.size()) {
            emit(false);
            emit(true);
            return;
        }
        for (const int option : options_[i]) {
            choice_[i] = option;
            choose(i + 1);
        }
    }

    /// One candidate for the present choice; the order of several axes on one factor is taken from the first source
    /// that has it, or from the last one when `reversed`.
    void emit(bool reversed) {
        AxisSet pending;
        sets_.assign(rule_.factors.size(), {});
        for (std::size_t i = 0; i < axes_.size(); ++i) {
            if (choice_[i] == stays_pending) {
                pending.insert(axes_[i]);
            } else if (choice_[i] != nowhere) {
                sets_[static_cast<std::size_t>(choice_[i])].insert(axes_[i]);
            }
        }
        lists_.assign(rule_.factors.size(), {});
        for (std::size_t f = 0; f < sets_.size(); ++f) {
            if (sets_[f].empty()) {
                continue;
            }
            lists_[f] = ordered(static_cast<int>(f), sets_[f], reversed);
            if (rule_.factors[f].size % mesh_.size(lists_[f]) != 0) {
                return;
            }
        }
        if (reversed && lists_ == last_) {
            return;
        }
        last_ = lists_;
        result_.push_back({lists_, pending, {}});
    }

    AxisList ordered(int factor, AxisSet set, bool reversed) const {
        AxisList result;
        const auto take = [&](const SourceLayout& source) {
            for (int d = 0; d < source.layout.rank; ++d) {
                if ((*source.dims)[static_cast<std::size_t>(d)].factor != factor) {
                    continue;
                }
                for (int i = 0; i < source.layout[d].size(); ++i) {
                    const AxisId axis = source.layout[d][i];
                    if (set.contains(axis) && !result.set().contains(axis)) {
                        result.push_back(axis);
                    }
                }
            }
        };
        if (reversed) {
            std::for_each(sources_.rbegin(), sources_.rend(), take);
        } else {
            std::for_each(sources_.begin(), sources_.end(), take);
        }
        return result;
    }

    const model::OpRule& rule_;
    const std::vector<SourceLayout>& sources_;
    AxisSet passable_;
    const mesh::Mesh& mesh_;
    std::vector<AxisId> axes_;
    std::vector<std::vector<int>> options_;
    std::vector<int> choice_;
    std::vector<Candidate> result_;
    std::vector<AxisSet> sets_;           ///< of the present choice, per factor
    std::vector<AxisList> lists_, last_;  ///< the same in order; those of the last candidate
};

}  // namespace

std::vector<Candidate> enumerate_candidates(const model::OpRule& rule, const std::vector<SourceLayout>& sources,
                                            AxisSet passable, const mesh::Mesh& mesh) {
    return Enumeration(rule, sources, passable, mesh).run();
}

partition::Layout operand_layout(const std::vector<model::DimFactor>& dims, const Candidate& candidate,
                                 const tensor::Shape& shape, const mesh::Mesh& mesh) {
    partition::Layout layout = partition::Layout::replicated(static_cast<int>(dims.size()));
    for (std::size_t d = 0; d < dims.size(); ++d) {
        const AxisList& axes = candidate.factor_axes[static_cast<std::size_t>(dims[d].factor)];
        layout.dims[d] = dims[d].shared_prefix ? dividing_prefix(axes, shape[d], mesh) : axes;
    }
    return layout;
}

AxisSet contracted_axes(const model::OpRule& rule, const Candidate& candidate) {
    AxisSet result;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].kind == FactorKind::contracting) {
            result = result | candidate.factor_axes[f].set();
        }
    }
    return result;
}

AxisList statistical_axes(const model::OpRule& rule, const Candidate& candidate) {
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].kind == FactorKind::statistical) {
            return candidate.factor_axes[f];
        }
    }
    return {};
}

namespace {

double local_size(const model::OpRule& rule, const Candidate& candidate, const mesh::Mesh& mesh, std::size_t factor) {
    return static_cast<double>(rule.factors[factor].size) /
           static_cast<double>(mesh.size(candidate.factor_axes[factor]));
}

}  // namespace

double local_work(const model::OpRule& rule, const Candidate& candidate, const mesh::Mesh& mesh) {
    double work = 1.0;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        work *= local_size(rule, candidate, mesh, f);
    }
    return work;
}

double local_flops(const model::OpRule& rule, const Candidate& candidate, const mesh::Mesh& mesh) {
    double result = 0.0;
    for (const model::OpRule::Term& term : rule.multiply_adds) {
        double product = 2.0 * term.count;
        for (const int f : term.factors) {
            product *= local_size(rule, candidate, mesh, static_cast<std::size_t>(f));
        }
        result += product;
    }
    return result;
}

}  // namespace shardplan::plan
