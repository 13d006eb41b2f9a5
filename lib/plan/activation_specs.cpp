#include "plan/activation_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/kv_heads.h"

namespace shardplan::plan {

using model::TensorRole;
using partition::Layout;
using partition::Phase;
using partition::Semantic;

namespace {

constexpr const char* kv_heads_name = "num_key_value_heads";

bool is_hint(TensorRole role) {
    switch (role) {
        case TensorRole::partial_hidden:
        case TensorRole::query_flat:
        case TensorRole::key_flat:
        case TensorRole::attention_merged:
        case TensorRole::mlp_intermediate:
        case TensorRole::logits: return true;
        default: return false;
    }
}

const char* role_name(TensorRole role) {
    switch (role) {
        case TensorRole::token_ids: return "token_ids";
        case TensorRole::hidden:
        case TensorRole::partial_hidden: return "hidden";
        case TensorRole::query:
        case TensorRole::query_flat: return "query";
        case TensorRole::key:
        case TensorRole::key_flat: return "key, value";
        case TensorRole::attention_output: return "attention_output";
        case TensorRole::attention_merged: return "attention_merged";
        case TensorRole::mlp_intermediate: return "mlp_intermediate";
        case TensorRole::logits: return "logits";
        case TensorRole::kv_cache: return "kv_cache";
        case TensorRole::latent_cache: return "latent_cache";
        case TensorRole::free:
        case TensorRole::parameter: break;
    }
    return "free";
}

/// The last dimension of a head: values may be narrower than keys.
std::int64_t width(const tensor::Shape& shape, const model::AttentionSpec& attention) {
    return shape.size() > 3 ? shape[3] : attention.head_dim;
}

}  // namespace

ActivationSpecs::ActivationSpecs(const Job& job, const RefinedMesh& mesh, const partition::SpecEntry& token_parallel,
                                 Placer& placer)
    : job_(job),
      mesh_(mesh),
      token_parallel_(token_parallel),
      placer_(placer),
      generation_(partition::is_generation(phase_of(job))),
      phase_(phase_of(job)) {}

DimRequest ActivationSpecs::request(Semantic semantic, const char* dimension, std::int64_t units) const {
    return {job_.partition_axis.resolve(semantic, phase_), dimension, units};
}

/// In generation every sequence dimension follows the query (1a.4: hidden states are P(B, gQ, E) there).
DimRequest ActivationSpecs::sequence(Semantic semantic, std::int64_t units) const {
    DimRequest dim = request(generation_ ? Semantic::query_length : semantic, length_name(), units);
    if (one_token_each() && job_.options.compat == partition::Compat::current &&
        placer_.size_of(placer_.existing_axes(dim.entry, "query")) > 1) {
        // Where a decode field is None that of training counts; eformer then makes the entry fit the one token (1b.4).
        dim.entry.axes.clear();
        dim.entry.field += ", corrected to None for one token";
    }
    return dim;
}

void ActivationSpecs::add_token_parallel(std::vector<DimRequest>& dims) const {
    partition::ResolvedEntry& tokens = dims[one_token_each() ? 0 : 1].entry;
    for (const std::string& axis : token_parallel_) {
        for (DimRequest& dim : dims) {
            std::erase(dim.entry.axes, axis);
        }
        tokens.axes.push_back(axis);
    }
    if (!token_parallel_.empty()) {
        tokens.field += " + tokens over the tensor-parallel axes (inference provider)";
    }
}

/// The fields of training place the cache in both phases; what all heads share is cut over neither heads nor width.
std::vector<DimRequest> ActivationSpecs::cache_requests(TensorRole role, const tensor::Shape& shape) const {
    const auto train = [&](Semantic s) { return job_.partition_axis.resolve(s, Phase::train); };
    std::vector<DimRequest> dims = {{train(Semantic::batch), "batch_size", shape[0]},
                                    {train(Semantic::kv_length), "cache_length", shape[1]},
                                    {{}, "none", 1},
                                    {{}, "none", 1}};
    if (role == TensorRole::kv_cache) {
        dims[2] = {train(Semantic::kv_head), kv_heads_name, job_.model.attention.kv_heads};
        dims[3] = {train(Semantic::kv_head_dim), "head_dim", job_.model.attention.head_dim};
    }
    return dims;
}

std::vector<DimRequest> ActivationSpecs::requests(TensorRole role, const tensor::Shape& shape) const {
    const model::AttentionSpec& attention = job_.model.attention;
    const DimRequest batch = request(Semantic::batch, batch_name(), shape[0]);
    const DimRequest none = {{}, "none", 1};
    switch (role) {
        case TensorRole::token_ids:
        case TensorRole::hidden:
        case TensorRole::partial_hidden: {
            std::vector<DimRequest> dims = {batch, sequence(Semantic::length, shape[1]),
                                            request(Semantic::embed, "hidden_size", job_.model.hidden)};
            add_token_parallel(dims);
            dims.resize(shape.size());
            return dims;
        }
        case TensorRole::query:
        case TensorRole::query_flat:
        case TensorRole::attention_output: {
            std::vector<DimRequest> dims = {batch, sequence(Semantic::query_length, shape[1]),
                                            request(Semantic::head, "num_attention_heads", attention.heads),
                                            request(Semantic::head_dim, "head_dim", width(shape, attention))};
            dims.resize(shape.size());
            return dims;
        }
        case TensorRole::key:
        case TensorRole::key_flat: {
            const DimRequest rows = generation_ ? none : request(Semantic::kv_length, length_name(), shape[1]);
            std::vector<DimRequest> dims = {batch, rows, request(Semantic::kv_head, kv_heads_name, attention.kv_heads),
                                            request(Semantic::kv_head_dim, "head_dim", width(shape, attention))};
            dims.resize(shape.size());
            return dims;
        }
        case TensorRole::kv_cache:
        case TensorRole::latent_cache: return cache_requests(role, shape);
        case TensorRole::attention_merged: {
            DimRequest merged = request(Semantic::embed, "hidden_size", attention.heads);
            if (merged.entry.axes.empty()) {
                merged = request(Semantic::head, "num_attention_heads", attention.heads);
            }
            return {batch, sequence(Semantic::length, shape[1]), merged};
        }
        case TensorRole::mlp_intermediate:
            return {batch, sequence(Semantic::length, shape[1]),
                    request(Semantic::mlp_intermediate, "intermediate_size", shape[2])};
        case TensorRole::logits:
            return {batch, sequence(Semantic::length, shape[1]), request(Semantic::vocab, "vocab_size", shape[2])};
        case TensorRole::free:
        case TensorRole::parameter: break;
    }
    return {};
}

/// kv heads on more devices than heads keep the leading part of their axes.
Layout ActivationSpecs::to_layout(const partition::PartitionSpec& spec, const std::vector<DimRequest>& dims) const {
    Layout layout = Layout::replicated(static_cast<int>(dims.size()));
    for (int d = 0; d < layout.rank; ++d) {
        const auto i = static_cast<std::size_t>(d);
        layout[d] = mesh_.refine(spec.entries[i]);
        if (dims[i].dimension == kv_heads_name) {
            layout[d] = dividing_prefix(layout[d], job_.model.attention.kv_heads, mesh_.refined());
        }
    }
    return layout;
}

/// A hint: later dimensions win over earlier ones, what does not divide is left out, nothing is reported.
Layout ActivationSpecs::lenient(std::vector<DimRequest> dims) const {
    Layout layout = Layout::replicated(static_cast<int>(dims.size()));
    mesh::AxisSet used;
    for (int d = layout.rank; d-- > 0;) {
        partition::SpecEntry names;
        for (const std::string& name : dims[static_cast<std::size_t>(d)].entry.axes) {
            if (mesh_.original().find(name)) {
                names.push_back(name);
            }
        }
        mesh::AxisList axes;
        const mesh::AxisList refined = mesh_.refine(names);
        for (int i = 0; i < refined.size(); ++i) {
            if (!used.contains(refined[i])) {
                axes.push_back(refined[i]);
            }
        }
        layout[d] = dividing_prefix(axes, dims[static_cast<std::size_t>(d)].units, mesh_.refined());
        used = used | layout[d].set();
    }
    return layout;
}

Ask ActivationSpecs::make(TensorRole role, const tensor::Shape& shape) {
    if (role == TensorRole::free || role == TensorRole::parameter) {
        return {};
    }
    Ask ask;
    std::vector<DimRequest> dims = requests(role, shape);
    for (const DimRequest& dim : dims) {
        if (!dim.entry.field.empty()) {
            ask.reason += fmt::format("{}{}{}", ask.reason.empty() ? "" : ", ", dim.entry.field,
                                      dim.entry.given ? "" : " (default)");
        }
    }
    if (is_hint(role)) {
        ask.strength = Ask::Strength::hint;
        ask.layout = lenient(dims);
        return ask;
    }
    ask.strength = Ask::Strength::enforce;
    for (DimRequest& dim : dims) {
        const bool shared = dim.dimension == kv_heads_name;
        if (shared) {
            const auto axes = placer_.existing_axes(dim.entry, role_name(role));
            const std::int64_t devices = placer_.size_of(axes);
            dim.reported = dim.units % devices != 0 && devices % dim.units != 0;
            dim.units = dim.reported ? dim.units : devices;
        }
    }
    const partition::PartitionSpec spec = placer_.place(role_name(role), dims);
    ask.layout = to_layout(spec, dims);
    ask.spec = mesh_.spec(ask.layout, spec);
    return ask;
}

const Ask& ActivationSpecs::ask(TensorRole role, const tensor::Shape& shape) {
    std::pair key(role, shape);
    const auto it = asks_.find(key);
    return it != asks_.end() ? it->second : asks_.emplace(std::move(key), make(role, shape)).first->second;
}

mesh::AxisSet ActivationSpecs::axes_used() const {
    mesh::AxisSet used;
    for (const auto& [key, ask] : asks_) {
        for (int d = 0; d < ask.layout.rank; ++d) {
            used = used | ask.layout[d].set();
        }
    }
    return used;
}

std::vector<ActivationSpec> ActivationSpecs::described() const {
    std::vector<ActivationSpec> result;
    for (const auto& [key, ask] : asks_) {
        ActivationSpec spec{role_name(key.first), ask.spec, ask.reason};
        const bool known = std::any_of(result.begin(), result.end(), [&](const ActivationSpec& other) {
            return other.name == spec.name && other.spec == spec.spec;  // keys and values of other widths
        });
        if (ask.strength == Ask::Strength::enforce && !known) {
            result.push_back(std::move(spec));
        }
    }
    return result;
}

}  // namespace shardplan::plan
