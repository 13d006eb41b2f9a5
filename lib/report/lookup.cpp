#include "report/lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/spelling.h"
#include "plan/pipeline.h"
#include "report/tensors_text.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

enum class Match { none, components, ending, exact };

Match match_name(std::string_view name, std::string_view query) {
    if (name == query) {
        return Match::exact;
    }
    const std::string dotted = fmt::format(".{}", name);
    const std::string wanted = fmt::format(".{}", query);
    if (dotted.ends_with(wanted)) {
        return Match::ending;
    }
    return (dotted + ".").find(wanted + ".") == std::string::npos ? Match::none : Match::components;
}

Match match_stored(const plan::StoredTensor& tensor, std::string_view query) {
    std::vector<std::string> names{tensor.name, stored_name(tensor)};
    for (const int layer : tensor.layers) {
        names.push_back(layer < 0 ? tensor.name : model::name_in_layer(tensor.name, layer));
    }
    Match best = Match::none;
    for (const std::string& name : names) {
        best = std::max(best, match_name(name, query));
        if (!tensor.part.empty()) {
            best = std::max(best, match_name(fmt::format("{} [{}]", name, tensor.part), query));
            best = std::max(best, match_name(fmt::format("{}[{}]", name, tensor.part), query));
        }
    }
    return best;
}

/// The stages of a pipeline that hold the tensor, in the layer that the query names where it names one.
std::vector<std::size_t> stages_of(const plan::Plan& plan, std::size_t index, std::string_view query) {
    std::vector<std::size_t> result;
    if (!plan.pipeline_axis) {
        return result;
    }
    const plan::StoredTensor& tensor = plan.stored[index];
    std::vector<int> layers;
    for (const int layer : tensor.layers) {
        const std::string name = layer < 0 ? tensor.name : model::name_in_layer(tensor.name, layer);
        if (match_name(name, query) != Match::none && match_name(tensor.name, query) == Match::none) {
            layers.push_back(layer);
        }
    }
    layers = layers.empty() ? tensor.layers : layers;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        const plan::StageTensors held(plan, plan.stages[s]);
        if (std::any_of(layers.begin(), layers.end(),
                        [&](int layer) { return held.holds(static_cast<int>(index), layer); })) {
            result.push_back(s);
        }
    }
    return result;
}

/// Keeps the best matches only.
class Matches {
public:
    void add(Match match, TensorRef tensor) {
        if (match == Match::none || match < best_) {
            return;
        }
        if (match > best_) {
            found_.clear();
            best_ = match;
        }
        if (std::find(found_.begin(), found_.end(), tensor) == found_.end()) {
            found_.push_back(std::move(tensor));
        }
    }
    std::vector<TensorRef> take() { return std::move(found_); }

private:
    Match best_ = Match::none;
    std::vector<TensorRef> found_;
};

std::vector<TensorRef> find_values(const plan::Plan& plan, std::string_view query) {
    Matches matches;
    for (const plan::BlockPlan& block : plan.blocks) {
        for (const plan::Value& value : block.values) {
            if (value.kind == plan::ValueKind::input || value.kind == plan::ValueKind::activation) {
                const std::string name = fmt::format("{}.{}", block.name, value.name);
                const Match match = value.name == query ? Match::ending : match_name(name, query);
                matches.add(match, {name, value.shape, value.dtype, value.layout, {}});
            }
        }
    }
    return matches.take();
}

std::string nearest_name(const plan::Plan& plan, std::string_view query) {
    std::vector<std::string> names;
    for (const plan::StoredTensor& tensor : plan.stored) {
        const std::string rest = split_name(tensor).rest;
        names.push_back(stored_name(tensor));
        names.push_back(rest);
        const std::size_t last = rest.rfind('.');
        const std::string owner = rest.substr(0, last);
        names.push_back(owner.substr(owner.rfind('.') + 1));
    }
    return base::nearest_word(query, names);
}

}  // namespace

Lookup find_tensors(const plan::Plan& plan, std::string_view query) {
    Matches matches;
    for (std::size_t i = 0; i < plan.stored.size(); ++i) {
        const plan::StoredTensor& tensor = plan.stored[i];
        const Match match = match_stored(tensor, query);
        if (match != Match::none) {
            matches.add(match,
                        {stored_name(tensor), tensor.shape, tensor.dtype, tensor.layout, stages_of(plan, i, query)});
        }
    }
    Lookup result{matches.take(), ""};
    if (result.matches.empty()) {
        result.matches = find_values(plan, query);
    }
    if (result.matches.empty()) {
        result.hint = nearest_name(plan, query);
    }
    return result;
}

}  // namespace shardplan::report
