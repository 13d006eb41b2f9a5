#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "exec/checkpoint_weights.h"

namespace shardplan::exec {
namespace {

constexpr std::size_t listed = 20;

bool readable(tensor::DType dtype) {
    return dtype == tensor::DType::f32 || dtype == tensor::DType::bf16 || dtype == tensor::DType::f16 ||
           dtype == tensor::DType::f64;
}

/// Messages of one kind: the first ones in full, the others as a number.
class Messages {
public:
    explicit Messages(std::string_view rest) : rest_(rest) {}

    void add(std::string message, std::string hint = "") {
        if (++count_ <= listed) {
            found_.push_back({"SP7001", diag::Severity::error, std::move(message), "", std::move(hint), {}});
        }
    }
    void move_to(std::vector<diag::Diagnostic>& all) {
        all.insert(all.end(), found_.begin(), found_.end());
        if (count_ > listed) {
            all.push_back({"SP7001",
                           diag::Severity::error,
                           fmt::format("{} more tensors {}", count_ - listed, rest_),
                           "",
                           "",
                           {}});
        }
    }

private:
    std::string_view rest_;
    std::size_t count_ = 0;
    std::vector<diag::Diagnostic> found_;
};

/// Names that may be in the checkpoint although the model has no such parameter (buffers, a copy of a tied head).
class Ignored {
public:
    explicit Ignored(const model::ModelSpec& model) : prefix_(model.names.optional_prefix) {
        for (const std::string& pattern : model.names.ignored) {
            patterns_.emplace_back(pattern);
        }
    }
    bool contains(const std::string& name) const {
        return matches(name) || (!prefix_.empty() && matches(prefix_ + name));
    }

private:
    bool matches(const std::string& name) const {
        return std::any_of(patterns_.begin(), patterns_.end(),
                           [&](const std::regex& pattern) { return std::regex_match(name, pattern); });
    }
    std::string prefix_;
    std::vector<std::regex> patterns_;
};

}  // namespace

std::vector<diag::Diagnostic> check_checkpoint(const model::Graph& graph, const tensor::Checkpoint& checkpoint) {
    Messages missing("are missing"), shapes("have another shape"), dtypes("have a dtype that cannot be read"),
        extra("are not part of the model");
    std::set<std::string> known;
    const auto check = [&](const model::Parameter& part, int layer) {
        const std::string name = model::name_in_layer(part.name, layer);
        const auto found = find_tensor(checkpoint, name, graph.model.names.optional_prefix);
        const bool first_part = known.insert(found == checkpoint.end() ? name : found->first).second;
        if (!first_part) {
            return;
        }
        if (found == checkpoint.end()) {
            missing.add(fmt::format("tensor {} of shape {} is missing", name, tensor::to_string(part.stored_shape)));
        } else if (found->second.shape != part.stored_shape) {
            shapes.add(fmt::format("tensor {} has shape {}, the model needs {}", found->first,
                                   tensor::to_string(found->second.shape), tensor::to_string(part.stored_shape)));
        } else if (!readable(found->second.dtype)) {
            dtypes.add(fmt::format("tensor {} has dtype {}", found->first, tensor::to_string(found->second.dtype)),
                       "f32, bf16, f16 and f64 can be read");
        }
    };
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
        const std::vector<model::Parameter> parts = model::stored_parts(graph.parameters[p]);
        for (const int layer : model::layers_of(graph, static_cast<int>(p))) {
            std::for_each(parts.begin(), parts.end(), [&](const model::Parameter& part) { check(part, layer); });
        }
    }
    const Ignored ignored(graph.model);
    for (const auto& [name, entry] : checkpoint) {
        if (!known.contains(name) && !ignored.contains(name)) {
            extra.add(
                fmt::format("tensor {} of shape {} is not part of the model", name, tensor::to_string(entry.shape)));
        }
    }
    std::vector<diag::Diagnostic> all;
    for (Messages* messages : {&missing, &shapes, &dtypes, &extra}) {
        messages->move_to(all);
    }
    return all;
}

}  // namespace shardplan::exec
