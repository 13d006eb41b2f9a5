#include "report/enum_text.h"

namespace shardplan::report {

std::string_view text_of(plan::Indivisible policy) {
    switch (policy) {
        case plan::Indivisible::strict: return "strict";
        case plan::Indivisible::drop: return "drop";
        case plan::Indivisible::pad: return "pad";
    }
    return "";
}

std::string_view text_of(plan::KvHeads policy) {
    return policy == plan::KvHeads::replicate ? "replicate" : "split";
}

std::string_view text_of(plan::TokenDispatcher dispatcher) {
    switch (dispatcher) {
        case plan::TokenDispatcher::automatic: return "auto";
        case plan::TokenDispatcher::all_gather: return "allgather";
        case plan::TokenDispatcher::all_to_all: return "alltoall";
    }
    return "auto";
}

std::string_view text_of(plan::StoredKind kind) {
    return kind == plan::StoredKind::parameter ? "parameter" : "cache";
}

std::string_view text_of(plan::ValueKind kind) {
    switch (kind) {
        case plan::ValueKind::input: return "input";
        case plan::ValueKind::activation: return "activation";
        case plan::ValueKind::parameter: return "parameter";
        case plan::ValueKind::cache: return "cache";
        case plan::ValueKind::gathered: return "gathered";
    }
    return "activation";
}

std::string_view text_of(partition::Compat compat) {
    return compat == partition::Compat::seed ? "seed" : "current";
}

std::string_view text_of(partition::RuleSource source) {
    switch (source) {
        case partition::RuleSource::derived: return "derived";
        case partition::RuleSource::seed_0_0_80: return "seed-0.0.80";
        case partition::RuleSource::easydel_0_2: return "easydel-0.2";
        case partition::RuleSource::custom: return "custom";
    }
    return "derived";
}

std::string_view text_of(partition::Semantic semantic) {
    using partition::Semantic;
    switch (semantic) {
        case Semantic::batch: return "batch";
        case Semantic::length: return "length";
        case Semantic::query_length: return "query_length";
        case Semantic::kv_length: return "kv_length";
        case Semantic::embed: return "embed";
        case Semantic::head: return "head";
        case Semantic::kv_head: return "kv_head";
        case Semantic::mlp_intermediate: return "mlp_intermediate";
        case Semantic::vocab: return "vocab";
        case Semantic::expert: return "expert";
        case Semantic::expert_gate: return "expert_gate";
        case Semantic::head_dim: return "head_dim";
        case Semantic::kv_head_dim: return "kv_head_dim";
        case Semantic::bias_head_seq: return "bias_head_seq";
        case Semantic::bias_kv_seq: return "bias_kv_seq";
        case Semantic::weight_storage: return "weight_storage";
    }
    return "batch";
}

std::string_view text_of(backend::ProviderChoice choice) {
    switch (choice) {
        case backend::ProviderChoice::local: return "local";
        case backend::ProviderChoice::fused: return "fused";
        case backend::ProviderChoice::inference: return "inference";
        case backend::ProviderChoice::automatic: return "auto";
    }
    return "auto";
}

std::string_view text_of(model::NormKind kind) {
    return kind == model::NormKind::rms ? "rms" : "layer";
}

std::string_view text_of(model::BlockLayout layout) {
    return layout == model::BlockLayout::sequential ? "sequential" : "parallel";
}

std::string_view text_of(model::QkNorm norm) {
    switch (norm) {
        case model::QkNorm::none: return "none";
        case model::QkNorm::per_head: return "per_head";
        case model::QkNorm::full: return "full";
        case model::QkNorm::l2: return "l2";
    }
    return "none";
}

std::string_view text_of(model::QkvStorage storage) {
    switch (storage) {
        case model::QkvStorage::separate: return "separate";
        case model::QkvStorage::concatenated: return "concatenated";
        case model::QkvStorage::grouped: return "grouped";
    }
    return "separate";
}

}  // namespace shardplan::report
