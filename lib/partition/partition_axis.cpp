#include "partition/partition_axis.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace shardplan::partition {
namespace {

/// The value a field has when the job does not write it: axes, or the value of other fields joined in order.
struct Default {
    std::string_view name;
    std::array<std::string_view, 2> axes;
    std::array<std::string_view, 2> fields;
};

/// One field for train and prefill, one for decode and insert.
struct FieldPair {
    Semantic semantic;
    std::string_view train;
    std::string_view decode;
};

constexpr FieldInfo seed_fields[] = {
    {"batch_axis", "batch of every activation", R"(["fsdp","dp"])"},
    {"sequence_axis", "sequence of hidden states", R"("sp")"},
    {"query_sequence_axis", "sequence of queries", R"("sp")"},
    {"head_axis", "attention heads", R"("tp")"},
    {"key_sequence_axis", "sequence of keys and values, and of the cache in both phases", R"("sp")"},
    {"hidden_state_axis", "features of hidden states", R"("tp")"},
    {"attention_dim_axis", "dimensions within a head", "null"},
    {"bias_head_sequence_axis", "heads of the attention bias", "null"},
    {"bias_key_sequence_axis", "keys of the attention bias", "null"},
    {"generation_query_sequence_axis", "sequence of queries in decode", "null"},
    {"generation_head_axis", "attention heads in decode", R"("tp")"},
    {"generation_key_sequence_axis", "sequence of keys and values in decode", R"("sp")"},
    {"generation_attention_dim_axis", "dimensions within a head in decode", "null"},
    {"kv_head_axis", "extension: key/value heads", "the axes of the query heads in the same phase"},
    {"mlp_intermediate_axis", "extension: features between the two halves of the MLP", "head_axis"},
    {"vocab_axis", "extension: vocabulary of the embedding and of the logits", "head_axis"},
    {"expert_axis", "extension: experts", R"("ep")"},
    {"weight_storage_axis", "extension: the dimension of a weight that is not parallel", R"(["fsdp","sp"])"},
};

constexpr Default seed_defaults[] = {
    {"batch_axis", {"fsdp", "dp"}, {}},
    {"sequence_axis", {"sp"}, {}},
    {"query_sequence_axis", {"sp"}, {}},
    {"head_axis", {"tp"}, {}},
    {"key_sequence_axis", {"sp"}, {}},
    {"hidden_state_axis", {"tp"}, {}},
    {"generation_head_axis", {"tp"}, {}},
    {"generation_key_sequence_axis", {"sp"}, {}},
    {"mlp_intermediate_axis", {}, {"head_axis"}},
    {"vocab_axis", {}, {"head_axis"}},
    {"expert_axis", {"ep"}, {}},
    {"weight_storage_axis", {"fsdp", "sp"}, {}},
};

constexpr FieldPair seed_map[] = {
    {Semantic::batch, "batch_axis", "batch_axis"},
    {Semantic::length, "sequence_axis", "sequence_axis"},
    {Semantic::query_length, "query_sequence_axis", "generation_query_sequence_axis"},
    {Semantic::kv_length, "key_sequence_axis", "generation_key_sequence_axis"},
    {Semantic::embed, "hidden_state_axis", "hidden_state_axis"},
    {Semantic::head, "head_axis", "generation_head_axis"},
    {Semantic::kv_head, "kv_head_axis", "kv_head_axis"},
    {Semantic::mlp_intermediate, "mlp_intermediate_axis", "mlp_intermediate_axis"},
    {Semantic::vocab, "vocab_axis", "vocab_axis"},
    {Semantic::expert, "expert_axis", "expert_axis"},
    {Semantic::expert_gate, "", ""},
    {Semantic::head_dim, "attention_dim_axis", "generation_attention_dim_axis"},
    {Semantic::kv_head_dim, "attention_dim_axis", "generation_attention_dim_axis"},
    {Semantic::bias_head_seq, "bias_head_sequence_axis", "bias_head_sequence_axis"},
    {Semantic::bias_kv_seq, "bias_key_sequence_axis", "bias_key_sequence_axis"},
    {Semantic::weight_storage, "weight_storage_axis", "weight_storage_axis"},
};

constexpr FieldInfo current_fields[] = {
    {"data_parallel_axis", "name of the data-parallel axis", R"("dp")"},
    {"fully_sharded_data_parallel_axis", "name of the fully sharded data-parallel axis", R"("fsdp")"},
    {"tensor_parallel_axis", "name of the tensor-parallel axis", R"("tp")"},
    {"sequence_parallel_axis", "name of the sequence-parallel axis", R"("sp")"},
    {"expert_parallel_axis", "name of the expert-parallel axis", R"("ep")"},
    {"batch_axis", "batch of every activation", "fully_sharded_data_parallel_axis, data_parallel_axis"},
    {"sequence_axis", "sequence of hidden states", "sequence_parallel_axis"},
    {"query_sequence_axis", "sequence of queries", "sequence_parallel_axis"},
    {"head_axis", "attention heads", "tensor_parallel_axis"},
    {"kv_head_axis", "key/value heads; not linked to head_axis", "tensor_parallel_axis"},
    {"key_sequence_axis", "sequence of keys and values, and of the cache in both phases", "sequence_parallel_axis"},
    {"hidden_state_axis", "features of hidden states", "tensor_parallel_axis"},
    {"mlp_intermediate_axis", "features between the two halves of the MLP", "tensor_parallel_axis"},
    {"vocab_axis", "vocabulary of the embedding and of the logits", "tensor_parallel_axis"},
    {"expert_axis", "experts", "expert_parallel_axis"},
    {"expert_gate_axis", "outputs of the router", "null"},
    {"attention_dim_axis", "dimensions within a query head", "null"},
    {"attention_kv_dim_axis", "dimensions within a key/value head", "null"},
    {"bias_head_sequence_axis", "heads of the attention bias", "null"},
    {"bias_key_sequence_axis", "keys of the attention bias", "null"},
    {"decode_batch_axis", "batch in decode; null = the train field, as in all decode fields", "batch_axis"},
    {"decode_query_sequence_axis", "sequence of queries in decode", "null (query_sequence_axis)"},
    {"decode_head_axis", "attention heads in decode", "head_axis"},
    {"decode_kv_head_axis", "key/value heads in decode", "kv_head_axis"},
    {"decode_key_sequence_axis", "sequence of keys and values in decode", "key_sequence_axis"},
    {"decode_attention_dim_axis", "dimensions within a query head in decode", "null (attention_dim_axis)"},
    {"decode_attention_kv_dim_axis", "dimensions within a key/value head in decode", "null (attention_kv_dim_axis)"},
    {"weight_storage_axis", "extension: the dimension of a weight that is not parallel",
     "fully_sharded_data_parallel_axis, sequence_parallel_axis"},
};

constexpr Default current_defaults[] = {
    {"data_parallel_axis", {"dp"}, {}},
    {"fully_sharded_data_parallel_axis", {"fsdp"}, {}},
    {"tensor_parallel_axis", {"tp"}, {}},
    {"sequence_parallel_axis", {"sp"}, {}},
    {"expert_parallel_axis", {"ep"}, {}},
    {"batch_axis", {}, {"fully_sharded_data_parallel_axis", "data_parallel_axis"}},
    {"sequence_axis", {}, {"sequence_parallel_axis"}},
    {"query_sequence_axis", {}, {"sequence_parallel_axis"}},
    {"head_axis", {}, {"tensor_parallel_axis"}},
    {"kv_head_axis", {}, {"tensor_parallel_axis"}},
    {"key_sequence_axis", {}, {"sequence_parallel_axis"}},
    {"hidden_state_axis", {}, {"tensor_parallel_axis"}},
    {"mlp_intermediate_axis", {}, {"tensor_parallel_axis"}},
    {"vocab_axis", {}, {"tensor_parallel_axis"}},
    {"expert_axis", {}, {"expert_parallel_axis"}},
    {"decode_batch_axis", {}, {"batch_axis"}},
    {"decode_head_axis", {}, {"head_axis"}},
    {"decode_kv_head_axis", {}, {"kv_head_axis"}},
    {"decode_key_sequence_axis", {}, {"key_sequence_axis"}},
    {"weight_storage_axis", {}, {"fully_sharded_data_parallel_axis", "sequence_parallel_axis"}},
};

// Where eformer has no decode field the train field serves both (semantics 1b.2).
constexpr FieldPair current_map[] = {
    {Semantic::batch, "batch_axis", "decode_batch_axis"},
    {Semantic::length, "sequence_axis", ""},
    {Semantic::query_length, "query_sequence_axis", "decode_query_sequence_axis"},
    {Semantic::kv_length, "key_sequence_axis", "decode_key_sequence_axis"},
    {Semantic::embed, "hidden_state_axis", ""},
    {Semantic::head, "head_axis", "decode_head_axis"},
    {Semantic::kv_head, "kv_head_axis", "decode_kv_head_axis"},
    {Semantic::mlp_intermediate, "mlp_intermediate_axis", ""},
    {Semantic::vocab, "vocab_axis", ""},
    {Semantic::expert, "expert_axis", ""},
    {Semantic::expert_gate, "expert_gate_axis", ""},
    {Semantic::head_dim, "attention_dim_axis", "decode_attention_dim_axis"},
    {Semantic::kv_head_dim, "attention_kv_dim_axis", "decode_attention_kv_dim_axis"},
    {Semantic::bias_head_seq, "bias_head_sequence_axis", ""},
    {Semantic::bias_kv_seq, "bias_key_sequence_axis", ""},
    {Semantic::weight_storage, "weight_storage_axis", ""},
};

std::span<const Default> defaults(Compat compat) {
    return compat == Compat::seed ? std::span<const Default>(seed_defaults)
                                  : std::span<const Default>(current_defaults);
}

std::span<const FieldPair> field_map(Compat compat) {
    return compat == Compat::seed ? std::span<const FieldPair>(seed_map) : std::span<const FieldPair>(current_map);
}

const FieldPair& pair_of(Compat compat, Semantic semantic) {
    const std::span<const FieldPair> map = field_map(compat);
    const auto found =
        std::find_if(map.begin(), map.end(), [&](const FieldPair& pair) { return pair.semantic == semantic; });
    if (found == map.end()) {
        throw std::invalid_argument("not a semantic of a dimension");
    }
    return *found;
}

}  // namespace

std::span<const FieldInfo> PartitionAxis::fields(Compat compat) {
    return compat == Compat::seed ? std::span<const FieldInfo>(seed_fields)
                                  : std::span<const FieldInfo>(current_fields);
}

void PartitionAxis::set(std::string_view name, SpecEntry axes, std::string pointer) {
    const std::span<const FieldInfo> known = fields(compat_);
    if (std::none_of(known.begin(), known.end(), [&](const FieldInfo& field) { return field.name == name; })) {
        throw std::invalid_argument(fmt::format("PartitionAxis has no field '{}'", name));
    }
    given_.insert_or_assign(std::string(name), Given{std::move(axes), std::move(pointer)});
}

ResolvedEntry PartitionAxis::default_of(std::string_view name) const {
    ResolvedEntry result;
    result.field = name;
    const std::span<const Default> table = defaults(compat_);
    const auto found = std::find_if(table.begin(), table.end(), [&](const Default& row) { return row.name == name; });
    if (found == table.end()) {
        return result;
    }
    for (const std::string_view axis : found->axes) {
        if (!axis.empty()) {
            result.axes.emplace_back(axis);
        }
    }
    if (found->fields[0].empty()) {
        return result;
    }
    if (found->fields[1].empty()) {
        return value(found->fields[0]);
    }
    const ResolvedEntry first = value(found->fields[0]);
    const ResolvedEntry second = value(found->fields[1]);
    result.axes = first.axes;
    result.axes.insert(result.axes.end(), second.axes.begin(), second.axes.end());
    result.given = first.given && second.given;
    result.pointer = result.given ? first.pointer : "";
    return result;
}

ResolvedEntry PartitionAxis::value(std::string_view name) const {
    const auto found = given_.find(name);
    if (found == given_.end()) {
        return default_of(name);
    }
    return {found->second.axes, true, std::string(name), found->second.pointer};
}

std::optional<Semantic> PartitionAxis::semantic_of(Compat compat, std::string_view field) {
    for (const FieldPair& pair : field_map(compat)) {
        if (pair.train == field && !field.empty()) {
            return pair.semantic;
        }
    }
    return std::nullopt;
}

ResolvedEntry PartitionAxis::resolve(Semantic semantic, Phase phase) const {
    const FieldPair& pair = pair_of(compat_, semantic);
    if (compat_ == Compat::seed) {
        const std::string_view field = is_generation(phase) ? pair.decode : pair.train;
        if (semantic == Semantic::kv_head && given_.find(field) == given_.end()) {
            return resolve(Semantic::head, phase);
        }
        return value(field);
    }
    // eformer takes the decode field only if it is not None: None can not mean "replicated in decode" (semantics 1b.4).
    if (is_generation(phase)) {
        const auto found = given_.find(pair.decode);
        if (found != given_.end() && !found->second.axes.empty()) {
            return value(pair.decode);
        }
    }
    return value(pair.train);
}

}  // namespace shardplan::partition
