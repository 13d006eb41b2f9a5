#include "plan/parameter_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/kv_heads.h"

namespace shardplan::plan {

using model::ParallelDim;
using model::Parameter;
using model::ParameterKind;
using partition::Phase;
using partition::ResolvedEntry;
using partition::Semantic;

namespace {

const char* role_text(ParameterKind kind) {
    switch (kind) {
        case ParameterKind::embedding: return "vocabulary";
        case ParameterKind::position_embedding: return "positions";
        case ParameterKind::column_linear: return "column";
        case ParameterKind::row_linear: return "row";
        case ParameterKind::replicated_linear: return "linear";
        case ParameterKind::latent_linear: return "latent";
        case ParameterKind::expert_column: return "expert column";
        case ParameterKind::expert_row: return "expert row";
        case ParameterKind::router_bias: return "router bias";
        case ParameterKind::norm_weight:
        case ParameterKind::norm_bias: return "norm";
        case ParameterKind::column_bias: return "column bias";
        case ParameterKind::row_bias: return "row bias";
    }
    return "linear";
}

struct ParallelInfo {
    Semantic semantic;
    const char* dimension;
    std::int64_t units;
};

class StoredPlacer {
public:
    StoredPlacer(const Job& job, const model::Graph& graph, const RefinedMesh& mesh, const partition::RuleTable* rules,
                 Placer& placer, diag::Diagnostics& diagnostics)
        : job_(job), graph_(graph), mesh_(mesh), rules_(rules), placer_(placer), diagnostics_(diagnostics) {}

    StoredTensor parameter(int index) {
        const Parameter& parameter = graph_.parameters[static_cast<std::size_t>(index)];
        StoredTensor stored;
        stored.kind = StoredKind::parameter;
        stored.parameter = index;
        stored.name = parameter.name;
        stored.part = parameter.part;
        stored.role = role_text(parameter.kind);
        stored.layers = model::layers_of(graph_, index);
        stored.shape = parameter.shape;
        stored.dtype = job_.workload.dtype;
        stored.layout = rules_ ? by_rules(parameter, stored) : derived(parameter, stored);
        stored.spec = mesh_.spec(stored.layout, stored.spec);
        finish(stored);
        return stored;
    }

    void finish(StoredTensor& stored) const {
        stored.local_shape = partition::local_shape(stored.layout, stored.shape, mesh_.refined());
        stored.bytes = tensor::byte_count(stored.shape, stored.dtype);
        stored.bytes_per_device = tensor::byte_count(stored.local_shape, stored.dtype);
        stored.replicas = mesh_.refined().device_count() / partition::shard_count(stored.layout, mesh_.refined());
    }

private:
    ParallelInfo parallel_info(const Parameter& parameter) const {
        const model::ModelSpec& model = job_.model;
        switch (parameter.parallel) {
            case ParallelDim::heads: return {Semantic::head, "num_attention_heads", model.attention.heads};
            case ParallelDim::kv_heads: return {Semantic::kv_head, "num_key_value_heads", model.attention.kv_heads};
            case ParallelDim::mlp: return {Semantic::mlp_intermediate, "intermediate_size", model.mlp.intermediate};
            case ParallelDim::vocab: return {Semantic::vocab, "vocab_size", model.vocab};
            case ParallelDim::experts:
                return {Semantic::mlp_intermediate, "moe_intermediate_size", model.moe.intermediate};
            case ParallelDim::none: break;
        }
        return {Semantic::embed, "none", 1};
    }

    partition::Layout derived(const Parameter& parameter, StoredTensor& stored) {
        const int rank = static_cast<int>(parameter.shape.size());
        const int cut = parallel_dimension(parameter);
        if (parameter.kind == ParameterKind::latent_linear) {
            return whole_over_heads(parameter, stored);
        }
        if (cut < 0 || parameter.parallel == ParallelDim::none) {
            stored.reason = fmt::format("derived: {} weights are replicated", stored.role);
            return partition::Layout::replicated(rank);
        }
        const ParallelInfo info = parallel_info(parameter);
        std::vector<DimRequest> dims(parameter.shape.size());
        DimRequest& parallel = dims[static_cast<std::size_t>(cut)];
        parallel = {job_.partition_axis.resolve(info.semantic, Phase::train), info.dimension, info.units};
        const bool shared = parameter.parallel == ParallelDim::kv_heads;
        if (shared) {
            const std::int64_t devices = placer_.size_of(placer_.existing_axes(parallel.entry, stored.name));
            const bool even = info.units % devices == 0 || devices % info.units == 0;
            parallel.units = even ? devices : info.units;
            parallel.reported = !even;
            if (even && job_.options.kv_heads == KvHeads::split) {
                parallel.units = parameter.shape[static_cast<std::size_t>(cut)];
                parallel.dimension = "num_key_value_heads * head_dim";
            }
        }
        stored.reason = fmt::format("derived: {} over {}{}", stored.role, parallel.entry.field,
                                    parallel.entry.given ? "" : " (default)");
        if (parameter.parallel == ParallelDim::experts) {
            add_experts(dims, parallel, stored);
        }
        if (rank >= 2) {
            partition::SpecEntry used;
            for (const DimRequest& dim : dims) {
                used.insert(used.end(), dim.entry.axes.begin(), dim.entry.axes.end());
            }
            add_storage(parameter, 2 * rank - 3 - cut, used, dims, stored);
        }
        stored.spec = placer_.place(stored.name, dims);
        partition::Layout layout = partition::Layout::replicated(rank);
        for (int d = 0; d < rank; ++d) {
            layout[d] = mesh_.refine(stored.spec.entries[static_cast<std::size_t>(d)]);
        }
        if (shared && job_.options.kv_heads == KvHeads::replicate) {
            layout[cut] = dividing_prefix(layout[cut], info.units, mesh_.refined());
        }
        return layout;
    }

    /// Every device of the heads needs the whole latent: the weight is only stored in parts.
    partition::Layout whole_over_heads(const Parameter& parameter, StoredTensor& stored) {
        const int input = parameter.transposed ? 0 : 1;
        std::vector<DimRequest> dims(parameter.shape.size());
        stored.reason = "derived: latent, whole over the heads' axes";
        add_storage(parameter, input, {}, dims, stored);
        stored.spec = placer_.place(stored.name, dims);
        partition::Layout layout = partition::Layout::replicated(static_cast<int>(parameter.shape.size()));
        layout[input] = mesh_.refine(stored.spec.entries[static_cast<std::size_t>(input)]);
        return layout;
    }

    /// The experts over expert_axis; what is cut over them is not cut a second time over the same axes.
    void add_experts(std::vector<DimRequest>& dims, DimRequest& parallel, StoredTensor& stored) const {
        dims.front() = {job_.partition_axis.resolve(Semantic::expert, Phase::train), "num_experts",
                        job_.model.moe.experts};
        const ResolvedEntry& experts = dims.front().entry;
        remove_axes(parallel.entry, experts.axes);
        stored.reason += fmt::format(", experts over {}{}", experts.field, experts.given ? "" : " (default)");
    }

    static void remove_axes(ResolvedEntry& entry, const partition::SpecEntry& used) {
        std::erase_if(entry.axes,
                      [&](const std::string& axis) { return std::find(used.begin(), used.end(), axis) != used.end(); });
    }

    void add_storage(const Parameter& parameter, int dim, const partition::SpecEntry& used,
                     std::vector<DimRequest>& dims, StoredTensor& stored) const {
        ResolvedEntry storage = job_.partition_axis.resolve(Semantic::weight_storage, Phase::train);
        remove_axes(storage, used);
        stored.reason += fmt::format(", stored over {}{}", storage.field, storage.given ? "" : " (default)");
        dims[static_cast<std::size_t>(dim)] = {storage, dimension_name(parameter, dim),
                                               parameter.shape[static_cast<std::size_t>(dim)]};
    }

    std::string dimension_name(const Parameter& parameter, int dim) const {
        const std::int64_t size = parameter.shape[static_cast<std::size_t>(dim)];
        return size == job_.model.hidden ? "hidden_size" : fmt::format("dimension {} of {}", dim, parameter.name);
    }

    static partition::FlaxLeaf flax_leaf(ParameterKind kind) {
        switch (kind) {
            case ParameterKind::embedding:
            case ParameterKind::position_embedding: return partition::FlaxLeaf::embedding;
            case ParameterKind::norm_weight: return partition::FlaxLeaf::scale;
            case ParameterKind::norm_bias:
            case ParameterKind::column_bias:
            case ParameterKind::row_bias: return partition::FlaxLeaf::bias;
            default: return partition::FlaxLeaf::kernel;
        }
    }

    static bool is_linear(ParameterKind kind) {
        return kind == ParameterKind::column_linear || kind == ParameterKind::row_linear ||
               kind == ParameterKind::replicated_linear || kind == ParameterKind::latent_linear ||
               kind == ParameterKind::expert_column || kind == ParameterKind::expert_row;
    }

    partition::Layout by_rules(const Parameter& parameter, StoredTensor& stored) {
        const int rank = static_cast<int>(parameter.shape.size());
        const bool custom = job_.rule_source == partition::RuleSource::custom;
        const bool per_expert = model::is_stored_per_expert(parameter);
        const std::string checkpoint_name = model::example_name(parameter, stored.layers.front());
        const std::string name = custom ? checkpoint_name
                                        : partition::flax_path(job_.rule_source, job_.model.model_type, checkpoint_name,
                                                               flax_leaf(parameter.kind));
        const auto match = rules_->match(name);
        if (!match) {
            stored.reason = fmt::format("no rule matches '{}': replicated", name);
            return partition::Layout::replicated(rank);
        }
        stored.rule = match->index;
        stored.reason = fmt::format("rule {} '{}'", match->index, match->rule->pattern);
        std::vector<partition::SpecEntry> entries = match->rule->spec.entries;
        if (per_expert && job_.rule_source == partition::RuleSource::seed_0_0_80) {
            entries.insert(entries.begin(), partition::SpecEntry{});  // its experts are not stacked
        }
        if (entries.size() > parameter.shape.size()) {
            too_long(parameter, *match->rule, custom, stored);
        }
        entries.resize(parameter.shape.size());
        if (!custom && is_linear(parameter.kind) && !parameter.transposed) {
            std::reverse(entries.end() - 2, entries.end());  // Flax kernels are (in, out); of experts (E, in, out)
        }
        std::vector<DimRequest> dims;
        for (std::size_t d = 0; d < entries.size(); ++d) {
            dims.push_back(
                {{entries[d], custom, custom ? "partition_rules" : "the preset's rule", match->rule->pointer},
                 dimension_name(parameter, static_cast<int>(d)),
                 parameter.shape[d]});
        }
        stored.spec = placer_.place(stored.name, dims);
        partition::Layout layout = partition::Layout::replicated(rank);
        for (int d = 0; d < rank; ++d) {
            layout[d] = mesh_.refine(stored.spec.entries[static_cast<std::size_t>(d)]);
        }
        return layout;
    }

    void too_long(const Parameter& parameter, const partition::ParameterRule& rule, bool custom, StoredTensor& stored) {
        if (custom) {
            diagnostics_.report("SP4008",
                                fmt::format("{} has {} entries, but {} has {} dimensions", to_string(rule.spec),
                                            rule.spec.entries.size(), parameter.name, parameter.shape.size()),
                                rule.pointer, "a PartitionSpec may be shorter than the tensor, never longer");
        } else {
            stored.reason += " (entries beyond the tensor's rank cut off)";
        }
    }

    const Job& job_;
    const model::Graph& graph_;
    const RefinedMesh& mesh_;
    const partition::RuleTable* rules_;  ///< null: derived
    Placer& placer_;
    diag::Diagnostics& diagnostics_;
};

void add_caches(const model::Graph& graph, ActivationSpecs& activations, const StoredPlacer& placer,
                std::vector<StoredTensor>& result) {
    for (std::size_t b = 0; b < graph.blocks.size(); ++b) {
        const model::Block& block = graph.blocks[b];
        for (std::size_t t = 0; t < block.tensors.size(); ++t) {
            const model::TensorInfo& info = block.tensors[t];
            if (info.kind != model::TensorKind::cache) {
                continue;
            }
            const Ask& ask = activations.ask(info.role, info.shape);
            StoredTensor stored;
            stored.kind = StoredKind::cache;
            stored.block = static_cast<int>(b);
            stored.tensor = static_cast<model::TensorId>(t);
            stored.name = "layers.{}." + info.name;
            stored.role = "cache";
            stored.layers = block.layers;
            stored.shape = info.shape;
            stored.dtype = info.dtype;
            stored.layout = ask.layout;
            stored.spec = ask.spec;
            stored.reason = ask.reason;
            placer.finish(stored);
            result.push_back(std::move(stored));
        }
    }
}

}  // namespace

int parallel_dimension(const Parameter& parameter) {
    switch (parameter.kind) {
        case ParameterKind::embedding: return 0;
        case ParameterKind::column_linear: return parameter.transposed ? 1 : 0;
        case ParameterKind::row_linear: return parameter.transposed ? 0 : 1;
        case ParameterKind::column_bias: return 0;
        case ParameterKind::expert_column: return 1;
        case ParameterKind::expert_row: return 2;
        default: return -1;
    }
}

std::vector<int> parallel_dimensions(const Parameter& parameter) {
    const int cut = parallel_dimension(parameter);
    if (cut < 0) {
        return {};
    }
    return parameter.parallel == ParallelDim::experts ? std::vector<int>{0, cut} : std::vector<int>{cut};
}

std::optional<partition::RuleTable> rule_table(const Job& job, diag::Diagnostics& diagnostics) {
    if (job.rule_source == partition::RuleSource::custom) {
        return partition::RuleTable::compile(job.custom_rules, diagnostics);
    }
    auto rules = partition::RuleTable::preset(job.rule_source, job.model.model_type);
    if (!rules) {
        diagnostics.report("SP4005", fmt::format("this preset has no rules for model_type '{}'", job.model.model_type),
                           "/partition_rules", "use \"derived\", or write the rules as a list");
    }
    return rules;
}

std::vector<StoredTensor> place_stored_tensors(const Job& job, const model::Graph& graph, const RefinedMesh& mesh,
                                               const partition::RuleTable* rules, Placer& placer,
                                               ActivationSpecs& activations, diag::Diagnostics& diagnostics) {
    StoredPlacer stored(job, graph, mesh, rules, placer, diagnostics);
    std::vector<StoredTensor> result;
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
        result.push_back(stored.parameter(static_cast<int>(i)));
    }
    if (!diagnostics.has_errors()) {
        add_caches(graph, activations, stored, result);
    }
    return result;
}

}  // namespace shardplan::plan
