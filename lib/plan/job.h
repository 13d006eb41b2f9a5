// A Job: everything a plan follows from. config reads it from JSON; nothing here knows JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/provider.h"
#include "mesh/mesh.h"
#include "model/model_spec.h"
#include "model/workload.h"
#include "partition/partition_axis.h"
#include "partition/rules.h"

namespace shardplan::plan {

enum class Indivisible : std::uint8_t {
    strict,  ///< an indivisible dimension or a missing axis is an error
    drop,    ///< the whole entry becomes None, with a diagnostic (eformer, semantics 1c.1)
    pad,     ///< strict, but the vocabulary is padded to Megatron's next size that divides (semantics 2.4)
};

enum class KvHeads : std::uint8_t {
    replicate,  ///< fewer kv heads than their axes: each head is held by several devices (vLLM)
    split,      ///< the projections stay evenly cut, their outputs are gathered (Megatron-Core 0.16)
};

/// How tokens reach the experts of other devices (names as Megatron's moe_token_dispatcher_type).
enum class TokenDispatcher : std::uint8_t {
    automatic,   ///< the one that moves fewer bytes
    all_gather,  ///< every token to every device of the experts' axes
    all_to_all,  ///< every token to the devices that hold its experts; sizes depend on the data
};

/// How attention gets at the keys and values of other devices where an axis cuts the sequence of queries and keys,
/// under the names of Megatron-Core's cp_comm_type.
enum class CpCommType : std::uint8_t {
    automatic,   ///< the fewest bytes, then the least memory
    all_gather,  ///< gathered: every device gets all keys and values
    p2p,         ///< ring: blocks of keys and values go from neighbour to neighbour, the softmax is merged on the way
    a2a,         ///< Ulysses: heads are exchanged for the sequence before and after attention
};

std::string_view to_string(CpCommType type);

struct Options {
    Indivisible indivisible = Indivisible::strict;
    std::int64_t padded_vocab_size = 0;  ///< rows of embedding and head; 0 = as `indivisible` has it
    KvHeads kv_heads = KvHeads::replicate;
    partition::Compat compat = partition::Compat::seed;
    CpCommType cp_comm_type = CpCommType::automatic;
    bool context_parallel_load_balance = false;  ///< zig-zag order of the tokens, see token_order.h
};

/// How layers are dealt out along a pipeline axis (Megatron-Core's names).
struct Pipeline {
    std::string axis = "pp";
    std::vector<std::int64_t> layers;    ///< of each stage; empty: even
    bool account_for_embedding = false;  ///< the embedding counts as a layer of the first stage
    bool account_for_loss = false;       ///< the head counts as a layer of the last stage
    bool remainder_last = false;         ///< what does not divide goes to the last stages instead of the first
};

struct Job {
    std::string name;  ///< for headings: the file name or the model's
    model::ModelSpec model;
    mesh::Mesh mesh;
    partition::PartitionAxis partition_axis;
    partition::RuleSource rule_source = partition::RuleSource::derived;
    std::vector<partition::ParameterRule> custom_rules;  ///< when rule_source is custom
    backend::ProviderChoice provider = backend::ProviderChoice::automatic;
    backend::ExpertOptions experts;
    TokenDispatcher dispatcher = TokenDispatcher::automatic;
    bool int8_weights = false;  ///< of linears; see plan/weight_format.h for which
    model::Workload workload;
    std::optional<Pipeline> pipeline;           ///< not given: an axis "pp" of the mesh that nothing names is one
    std::optional<std::int64_t> device_memory;  ///< bytes a device has; a plan that needs more is refused
    Options options;
};

/// Whose fields hold in the job's step. As upstream an insert of several tokens has the generation fields in `current`
/// only; in `seed` they hold iff the query length is 1.
partition::Phase phase_of(const Job& job);

}  // namespace shardplan::plan
