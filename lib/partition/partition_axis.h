// PartitionAxis: which mesh axes each kind of dimension is cut over. Two dialects (semantics.md 1a, 1b):
//   seed     the 13 fields of EasyDeL 0.0.80; None in a generation_* field means replicated in decode.
//   current  eformer's fields; a decode_* field that is None falls back to the train field (1b.4).
// Extensions of the seed dialect leave the 13 alone: kv_head_axis (default: what heads have in the same phase),
// mlp_intermediate_axis and vocab_axis (default: head_axis, in decode too: their weights are placed once),
// expert_axis ("ep"), weight_storage_axis (("fsdp","sp")). What is placed once for both phases, weights and the
// key/value cache, is resolved with Phase::train.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/partition_spec.h"

namespace shardplan::partition {

enum class Compat : std::uint8_t { seed, current };

/// Decode iff the query length is 1 (seed); insert behaves as decode (current).
enum class Phase : std::uint8_t { train, prefill, decode, insert };

/// The phases of the generation_* (seed) and decode_* (current) fields.
constexpr bool is_generation(Phase phase) {
    return phase == Phase::decode || phase == Phase::insert;
}

/// What a dimension means; names as in eformer (1b.2).
enum class Semantic : std::uint8_t {
    batch,
    length,
    query_length,
    kv_length,
    embed,
    head,
    kv_head,
    mlp_intermediate,
    vocab,
    expert,
    expert_gate,
    head_dim,
    kv_head_dim,
    bias_head_seq,
    bias_kv_seq,
    weight_storage,  ///< ours: the second dimension of parallel weights (ZeRO-3 / FSDP storage)
};

struct FieldInfo {
    std::string_view name;
    std::string_view description;
    std::string_view
        default_text;  ///< as JSON: "\"tp\"", "[\"fsdp\",\"dp\"]", "null", or a sentence for linked defaults
};

/// The axes an entry resolves to, and why.
struct ResolvedEntry {
    SpecEntry axes;
    /// Written in the job (then the mesh must have the axes); false = a default. A default made of base names
    /// (current: batch_axis of fsdp and dp) counts as given when the job gives all of them.
    bool given = false;
    std::string field;    ///< the field that decided, "generation_head_axis"; "" when the dialect has none
    std::string pointer;  ///< JSON pointer of the field when given
};

class PartitionAxis {
public:
    explicit PartitionAxis(Compat compat = Compat::seed) : compat_(compat) {}

    Compat compat() const { return compat_; }
    /// The fields of a dialect in their order, extensions last.
    static std::span<const FieldInfo> fields(Compat compat);

    /// Sets a field as the job writes it. Throws std::invalid_argument when the dialect has no such field.
    void set(std::string_view name, SpecEntry axes, std::string pointer);

    ResolvedEntry resolve(Semantic semantic, Phase phase) const;

    /// The value of one field, given or default. "" has none: no axes. In `seed` a kv_head_axis that is not given has
    /// no value of its own: resolve it.
    ResolvedEntry value(std::string_view field) const;
    /// The dimension whose train field this is; nullopt for base names and decode fields.
    static std::optional<Semantic> semantic_of(Compat compat, std::string_view field);

private:
    struct Given {
        SpecEntry axes;
        std::string pointer;
    };
    ResolvedEntry default_of(std::string_view name) const;

    Compat compat_;
    std::map<std::string, Given, std::less<>> given_;
};

}  // namespace shardplan::partition
