#include "report/tensors_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <utility>

#include "report/number_text.h"
#include "report/range_text.h"
#include "report/table.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

using plan::StoredTensor;

std::vector<std::string> cells_of(const StoredTensor& tensor, const std::string& name) {
    return {name,
            tensor.role,
            shape_text(tensor.shape),
            std::string(tensor::to_string(tensor.dtype)),
            to_string(tensor.spec),
            shape_text(tensor.local_shape),
            bytes_text(tensor.bytes_per_device),
            count_text(tensor.replicas)};
}

/// Reasons in the order of their first tensor, with the names they hold for.
std::vector<std::pair<std::string, std::vector<std::string>>> grouped_reasons(const plan::Plan& plan) {
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;
    const auto add = [&](const std::string& name, const std::string& reason) {
        auto it = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == reason; });
        if (it == groups.end()) {
            it = groups.insert(groups.end(), {reason, {}});
        }
        if (std::find(it->second.begin(), it->second.end(), name) == it->second.end()) {
            it->second.push_back(name);
        }
    };
    for (const StoredTensor& tensor : plan.stored) {
        if (!tensor.reason.empty()) {
            add(split_name(tensor).rest, tensor.reason);
        }
    }
    return groups;
}

}  // namespace

NameParts split_name(const StoredTensor& tensor) {
    const std::string name = stored_name(tensor);
    const std::size_t hole = tensor.name.find("{}");
    if (hole == std::string::npos || tensor.layers.empty() || tensor.layers.front() < 0) {
        return {"", name};
    }
    const std::size_t end = hole + fold_layers(tensor.layers).size();
    if (end >= name.size()) {
        return {"", name};
    }
    return {name.substr(0, end), name.substr(end + (name[end] == '.' ? 1 : 0))};
}

void write_tensors_text(std::ostream& out, const plan::Plan& plan, const Style& style) {
    Table table({{"name", false, 20},
                 {"kind"},
                 {"shape", false, 8},
                 {"dtype"},
                 {"spec", false, 13},
                 {"local shape", false, 11},
                 {"per device", true},
                 {"replicas", true}});
    std::string heading;
    for (const StoredTensor& tensor : plan.stored) {
        const NameParts name = split_name(tensor);
        if (name.heading != heading && !name.heading.empty()) {
            const std::size_t times = tensor.layers.size();
            table.add_heading(fmt::format("{}  ({} time{})", name.heading, times, times == 1 ? "" : "s"));
        }
        heading = name.heading;
        table.add_row(cells_of(tensor, (heading.empty() ? "" : "  ") + name.rest));
    }
    table.print(out, style);
}

void write_reasons_text(std::ostream& out, const plan::Plan& plan, const Style& style) {
    Table table({{"tensors", false, 30}, {"why", false, 40}});
    for (const auto& [reason, names] : grouped_reasons(plan)) {
        table.add_row({fmt::format("{}", fmt::join(names, ", ")), reason});
    }
    for (const plan::ActivationSpec& activation : plan.activations) {
        table.add_row({fmt::format("{} {}", activation.name, to_string(activation.spec)), activation.reason});
    }
    if (!table.empty()) {
        table.print(out, style);
    }
}

}  // namespace shardplan::report
