#include "partition/eformer.h"

#include <fmt/format.h>

namespace shardplan::partition {
namespace {

constexpr const char* batch = "__BATCH__";
constexpr const char* query_length = "__QUERY_LENGTH__";
constexpr const char* kv_length = "__KV_LENGTH__";
constexpr const char* head = "__HEAD__";
constexpr const char* kv_head = "__KV_HEAD__";
constexpr const char* dp = "__DATA_PARALLEL__";
constexpr const char* fsdp = "__FULLY_SHARDED_DATA_PARALLEL__";
constexpr const char* tp = "__TENSOR_PARALLEL__";
constexpr const char* ep = "__EXPERT_PARALLEL__";
constexpr const char* sp = "__SEQUENCE_PARALLEL__";
constexpr const char* train_mode = "__train__";

struct Token {
    std::string_view name;
    std::string_view field;
};

constexpr Token tokens[] = {
    {batch, "batch_axis"},
    {"__LENGTH__", "sequence_axis"},
    {query_length, "query_sequence_axis"},
    {kv_length, "key_sequence_axis"},
    {"__EMBED__", "hidden_state_axis"},
    {head, "head_axis"},
    {kv_head, "kv_head_axis"},
    {"__MLP_INTERMEDIATE__", "mlp_intermediate_axis"},
    {"__VOCAB__", "vocab_axis"},
    {"__EXPERT__", "expert_axis"},
    {"__EXPERT_GATE__", "expert_gate_axis"},
    {"__HEAD_DIM__", "attention_dim_axis"},
    {"__KV_HEAD_DIM__", "attention_kv_dim_axis"},
    {"__BIAS_HEAD_SEQ__", "bias_head_sequence_axis"},
    {"__BIAS_KV_SEQ__", "bias_key_sequence_axis"},
    {dp, "data_parallel_axis"},
    {fsdp, "fully_sharded_data_parallel_axis"},
    {tp, "tensor_parallel_axis"},
    {ep, "expert_parallel_axis"},
    {sp, "sequence_parallel_axis"},
};

std::optional<std::string_view> field_of_token(std::string_view name) {
    for (const Token& token : tokens) {
        if (token.name == name) {
            return token.field;
        }
    }
    return std::nullopt;
}

bool is_field(std::string_view name) {
    for (const FieldInfo& field : PartitionAxis::fields(Compat::current)) {
        if (field.name == name) {
            return true;
        }
    }
    return false;
}

SpecEntry resolve_field(const PartitionAxis& partition_axis, std::string_view field, Phase phase) {
    if (const std::optional<Semantic> semantic = PartitionAxis::semantic_of(Compat::current, field)) {
        return partition_axis.resolve(*semantic, phase).axes;
    }
    return partition_axis.value(field).axes;
}

SpecEntry resolve_name(const PartitionAxis& partition_axis, const std::string& name, Phase phase) {
    if (name == "_") {
        return {};
    }
    const std::optional<std::string_view> field = field_of_token(name);
    if (!field) {
        throw ResolveError(ResolveProblem::unknown_name, fmt::format("'{}' is not the name of a logical axis", name));
    }
    return resolve_field(partition_axis, *field, phase);
}

SpecEntry resolve_composite(const PartitionAxis& partition_axis, const std::vector<std::string>& members, Phase phase) {
    SpecEntry result;
    for (const std::string& member : members) {
        const std::string_view field = field_of_token(member).value_or(member);
        if (!is_field(field)) {
            result.push_back(member);
            continue;
        }
        const SpecEntry axes = resolve_field(partition_axis, field, phase);
        if (axes.size() > 1) {
            throw ResolveError(ResolveProblem::nested_tuple,
                               fmt::format("'{}' stands for {}: several axes can not be a member of a composite",
                                           member, to_string(axes)));
        }
        if (axes.empty()) {
            throw ResolveError(ResolveProblem::empty_member,
                               fmt::format("'{}' stands for no axis: it can not be a member of a composite", member));
        }
        result.push_back(axes.front());
    }
    return result;
}

Phase phase_of(const ModeTerm& mode, const std::optional<tensor::Shape>& shape) {
    if (const std::string* name = std::get_if<std::string>(&mode)) {
        if (*name == "__autoregressive__") {
            return Phase::decode;
        }
        if (*name == "__insert__") {
            return Phase::insert;
        }
        return *name == "__prefill__" ? Phase::prefill : Phase::train;
    }
    const int* dim = std::get_if<int>(&mode);
    if (dim == nullptr) {
        throw ResolveError(ResolveProblem::mode_missing, "axes need a mode, or a dimension that decides it");
    }
    if (!shape || *dim < 0 || static_cast<std::size_t>(*dim) >= shape->size()) {
        throw ResolveError(ResolveProblem::shape_missing,
                           fmt::format("the mode follows from dimension {}, which needs a shape that has it", *dim));
    }
    return (*shape)[static_cast<std::size_t>(*dim)] == 1 ? Phase::decode : Phase::train;
}

using Composite = std::vector<std::string>;
constexpr std::monostate none{};

const std::vector<DynamicShardingAxes>& table() {
    static const std::vector<DynamicShardingAxes> rows = {
        {"HiddenStateSharding", {batch, query_length, "__EMBED__"}, 1},
        {"AttnQSharding", {batch, query_length, head, "__HEAD_DIM__"}, 1},
        {"AttnKVSharding", {batch, kv_length, kv_head, "__KV_HEAD_DIM__"}, 1},
        {"RowWise", {tp, Composite{fsdp, sp}}, train_mode},
        {"SRowWise", {tp}, train_mode},
        {"ColumnWise", {Composite{fsdp, sp}, tp}, train_mode},
        {"SColumnWise", {Composite{fsdp, sp}}, train_mode},
        {"Replicated", {none}, train_mode},
        {"ExpertColumnWise", {ep, fsdp, tp}, train_mode},
        {"ExpertRowWise", {ep, tp, fsdp}, train_mode},
        {"ExpertColumnWiseAlt", {ep, Composite{fsdp, sp}, tp}, train_mode},
        {"ExpertRowWiseAlt", {ep, tp, Composite{fsdp, sp}}, train_mode},
        {"UnifiedExpertColumnWise", {Composite{fsdp, sp, ep}, none, tp}, train_mode},
        {"UnifiedExpertRowWise", {Composite{fsdp, sp, ep}, tp, none}, train_mode},
        {"ExpertActivations", {dp, sp, ep, tp}, train_mode},
        {"ExpertActivationsAlt", {dp, sp, Composite{tp, fsdp}}, train_mode},
        {"ExpertTensorParallel", {tp, none, none}, train_mode},
    };
    return rows;
}

}  // namespace

PartitionSpec resolve_axes(const PartitionAxis& partition_axis, const std::vector<AxisTerm>& axes, const ModeTerm& mode,
                           const std::optional<tensor::Shape>& shape) {
    if (partition_axis.compat() != Compat::current) {
        throw std::invalid_argument("logical axes need a PartitionAxis of the current dialect");
    }
    const Phase phase = phase_of(mode, shape);
    PartitionSpec spec;
    for (const AxisTerm& term : axes) {
        if (const auto* members = std::get_if<std::vector<std::string>>(&term)) {
            spec.entries.push_back(resolve_composite(partition_axis, *members, phase));
        } else if (const auto* name = std::get_if<std::string>(&term)) {
            spec.entries.push_back(resolve_name(partition_axis, *name, phase));
        } else {
            spec.entries.emplace_back();
        }
    }
    return spec;
}

std::span<const DynamicShardingAxes> dynamic_sharding_axes() {
    return table();
}

const DynamicShardingAxes* find_dynamic_sharding_axes(std::string_view name) {
    for (const DynamicShardingAxes& row : table()) {
        if (row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace shardplan::partition
