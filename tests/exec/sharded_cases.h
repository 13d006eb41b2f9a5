// The table of sharded runs. A case runs where its mesh has as many devices as there are ranks.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/models.h"
#include "kernels/kernels.h"

namespace shardplan::test {

struct ShardedCase {
    std::string model;
    std::string mesh;
    model::Mode mode = model::Mode::prefill;
    tensor::DType dtype = tensor::DType::f32;
    std::vector<std::pair<std::string, partition::SpecEntry>> axes = {};  ///< fields of PartitionAxis
    backend::ProviderChoice provider = backend::ProviderChoice::automatic;
    kernels::KernelSet kernels = kernels::KernelSet::reference;
    plan::KvHeads kv_heads = plan::KvHeads::replicate;
    plan::TokenDispatcher dispatcher = plan::TokenDispatcher::automatic;
    std::optional<bool> grouped = std::nullopt;
    partition::Compat compat = partition::Compat::seed;  ///< of the provider: current has experts in inference
    std::int64_t batch = 8;
    std::int64_t tokens = 8;
    std::int64_t chunk = 0;
    std::int64_t insert = 0;  ///< in mode insert
    bool pad = false;         ///< a vocabulary of odd size, padded
    std::int64_t cache = 0;
    plan::CpCommType cp_comm_type = plan::CpCommType::automatic;
    bool zigzag = false;
    bool int8 = false;            ///< weights
    bool current_fields = false;  ///< PartitionAxis and provider of the dialect current

    std::string name() const {
        std::string text =
            fmt::format("{} on {}, {} {}", model, mesh, model::to_string(mode), tensor::to_string(dtype));
        text += int8 ? " with int8 weights" : "";
        text += insert > 0 ? fmt::format(" of {}", insert) : "";
        text += current_fields ? " (current)" : "";
        text += chunk > 0 ? fmt::format(" in chunks of {}", chunk) : "";
        text += pad ? ", padded" : "";
        for (const auto& [field, entry] : axes) {
            text += fmt::format(", {} = {}", field, partition::to_string(entry));
        }
        text += dispatcher == plan::TokenDispatcher::all_to_all   ? ", alltoall"
                : dispatcher == plan::TokenDispatcher::all_gather ? ", allgather"
                                                                  : "";
        text += grouped ? (*grouped ? ", grouped" : ", one by one") : "";
        if (cp_comm_type != plan::CpCommType::automatic || zigzag) {
            text += fmt::format(", {}{}", plan::to_string(cp_comm_type), zigzag ? " in zig-zag" : "");
        }
        return text;
    }
};

/// Experts over axes of their own and over those of the tokens, cut inside of the experts, stored over fsdp.
inline void add_expert_cases(std::vector<ShardedCase>& cases) {
    using Axes = std::vector<std::pair<std::string, partition::SpecEntry>>;
    const Axes tokens_over_ep = {{"batch_axis", {"ep"}}};
    const Axes experts_over_dp = {{"expert_axis", {"dp"}}};
    const Axes experts_over_tp = {{"expert_axis", {"tp"}}, {"hidden_state_axis", {}}};
    for (const auto& [mesh, axes] :
         std::vector<std::pair<std::string, Axes>>{{"ep=2", {}},
                                                   {"ep=2", tokens_over_ep},
                                                   {"dp=2", experts_over_dp},
                                                   {"tp=2", experts_over_tp},
                                                   {"ep=4", tokens_over_ep},
                                                   {"ep=2,tp=2", {}},
                                                   {"ep=2,tp=2", {{"hidden_state_axis", {}}, {"batch_axis", {"ep"}}}},
                                                   {"dp=2,ep=2", {{"batch_axis", {"dp", "ep"}}}},
                                                   {"fsdp=2,ep=2", {}},
                                                   {"ep=2,sp=2", {}},
                                                   {"dp=2,ep=2,tp=2", {{"batch_axis", {"dp", "ep"}}}},
                                                   {"fsdp=2,ep=2,tp=2", {}},
                                                   {"dp=4,tp=2", experts_over_dp},
                                                   {"ep=8", tokens_over_ep}}) {
        for (const char* model : {"mixtral", "qwen2_moe", "glm4_moe", "granitemoe"}) {
            cases.push_back({model, mesh, model::Mode::prefill, tensor::DType::f32, axes});
            cases.push_back({model, mesh, model::Mode::decode, tensor::DType::f32, axes});
        }
        cases.push_back({"glm4_moe", mesh, model::Mode::prefill, tensor::DType::bf16, axes});
        cases.push_back({"mixtral", mesh, model::Mode::decode, tensor::DType::bf16, axes});
        ShardedCase onednn{"mixtral", mesh, model::Mode::prefill, tensor::DType::f32, axes};
        onednn.kernels = kernels::KernelSet::onednn;
        cases.push_back(onednn);
    }
}

/// Chunks over every kind of axis, and a vocabulary that must be padded to be cut.
inline void add_chunk_and_padding_cases(std::vector<ShardedCase>& cases) {
    for (const char* mesh : {"tp=2", "sp=2", "fsdp=2", "sp=2,tp=2", "sp=4", "tp=4", "fsdp=2,sp=2,tp=2", "tp=8"}) {
        for (const char* model : {"llama", "gpt2", "gemma2", "bloom", "qwen2_moe"}) {
            ShardedCase chunks{model, mesh};
            chunks.tokens = 16;
            chunks.chunk = 4;
            chunks.pad = std::string_view(model) == "bloom";
            cases.push_back(chunks);
        }
        for (const char* model : {"llama", "gpt2", "gemma2"}) {
            for (const model::Mode mode : {model::Mode::prefill, model::Mode::decode}) {
                ShardedCase padded{model, mesh, mode};
                padded.pad = true;
                cases.push_back(padded);
            }
        }
    }
}

/// Tokens sent to their experts over one axis, over several, over part of the experts' axes and of the tokens', with
/// experts cut inside, with tokens cut by sequence.
inline void add_dispatch_cases(std::vector<ShardedCase>& cases) {
    using Axes = std::vector<std::pair<std::string, partition::SpecEntry>>;
    const Axes over_ep = {{"batch_axis", {"ep"}}};
    const Axes whole_hidden = {{"hidden_state_axis", {}}, {"batch_axis", {"ep"}}};
    const Axes folded = {{"batch_axis", {"dp", "fsdp"}}, {"expert_axis", {"fsdp", "dp"}}};
    const Axes partly = {{"batch_axis", {"dp"}}, {"expert_axis", {"dp", "ep"}}};
    for (const auto& [mesh, axes] : std::vector<std::pair<std::string, Axes>>{
             {"ep=2", over_ep},
             {"ep=4", over_ep},
             {"ep=8", over_ep},
             {"dp=2", {{"expert_axis", {"dp"}}}},
             {"sp=2", {{"expert_axis", {"sp"}}}},
             {"ep=2,tp=2", over_ep},
             {"ep=2,tp=2", whole_hidden},
             {"dp=2,fsdp=2", folded},
             {"dp=2,ep=2", partly},
             {"dp=2,ep=2", {{"batch_axis", {"dp", "ep"}}}},
             {"dp=2,fsdp=2,tp=2", folded},
             {"dp=2,ep=2,tp=2", {{"batch_axis", {"ep", "dp"}}, {"hidden_state_axis", {}}}},
             {"dp=2,sp=4", {{"expert_axis", {"sp", "dp"}}, {"key_sequence_axis", {}}}}}) {
        for (const char* model : {"mixtral", "qwen2_moe", "gpt_oss", "dbrx", "llama4"}) {
            for (const auto mode : {model::Mode::prefill, model::Mode::decode}) {
                ShardedCase c{model, mesh, mode, tensor::DType::f32, axes};
                const bool whole = mode == model::Mode::decode && std::string(mesh) == "sp=2";  // one token each
                c.dispatcher = whole ? plan::TokenDispatcher::automatic : plan::TokenDispatcher::all_to_all;
                c.grouped = cases.size() % 2 == 0;
                c.kernels = cases.size() % 3 == 0 ? kernels::KernelSet::onednn : kernels::KernelSet::reference;
                cases.push_back(c);
            }
        }
        ShardedCase rounded{"mixtral of all", mesh, model::Mode::prefill, tensor::DType::bf16, axes};
        rounded.dispatcher = plan::TokenDispatcher::all_to_all;
        cases.push_back(rounded);
    }
}

/// Sinks, chunks, tempered queries and biased experts over every kind of axis.
inline void add_expert_family_cases(std::vector<ShardedCase>& cases) {
    for (const char* mesh : {"dp=2", "tp=2", "sp=2", "ep=2", "fsdp=2", "ep=2,tp=2", "sp=2,tp=2", "fsdp=2,tp=2", "sp=4",
                             "tp=4", "ep=2,sp=2", "fsdp=2,ep=2,tp=2", "sp=2,ep=2,tp=2", "tp=8"}) {
        for (const char* model : {"gpt_oss", "dbrx", "llama4"}) {
            cases.push_back({model, mesh});
            cases.push_back({model, mesh, model::Mode::decode});
        }
    }
}

/// The other families of experts; tokens sent to their experts where an axis of the experts cuts them.
inline void add_further_expert_cases(std::vector<ShardedCase>& cases) {
    for (const char* mesh : {"dp=2", "tp=2", "sp=2", "ep=2", "fsdp=2", "ep=2,tp=2", "sp=2,tp=2", "tp=4", "ep=2,sp=2",
                             "fsdp=2,ep=2,tp=2", "tp=8"}) {
        for (const char* model :
             {"minimax_m2", "phimoe", "qwen3_moe", "olmoe", "granitemoeshared", "moonlight", "kimi_k2"}) {
            for (const auto mode : {model::Mode::prefill, model::Mode::decode}) {
                cases.push_back({model, mesh, mode});
                if (std::string_view(mesh).starts_with("ep=2")) {
                    ShardedCase sent{model, mesh, mode};
                    sent.axes = {{"batch_axis", {"ep"}}};
                    sent.dispatcher = plan::TokenDispatcher::all_to_all;
                    sent.kernels = kernels::KernelSet::onednn;
                    cases.push_back(sent);
                }
            }
        }
    }
}

/// Several tokens written behind a cache: with eformer's decode fields, which fall back to those of training, and with
/// fields of their own; in the seed's dialect with those of prefill.
inline void add_insert_cases(std::vector<ShardedCase>& cases) {
    using Axes = std::vector<std::pair<std::string, partition::SpecEntry>>;
    const Axes own = {{"decode_batch_axis", {"dp"}},
                      {"decode_head_axis", {"sp"}},
                      {"decode_kv_head_axis", {"sp"}},
                      {"decode_query_sequence_axis", {"fsdp"}},
                      {"decode_key_sequence_axis", {"tp"}}};
    for (const char* mesh : {"dp=2", "fsdp=2", "tp=2", "sp=2", "ep=2", "sp=3", "sp=2,tp=2", "fsdp=2,tp=2", "tp=4",
                             "sp=4", "dp=1,fsdp=2,sp=2,tp=1", "fsdp=2,sp=2,tp=2", "dp=1,sp=2,fsdp=2,tp=2", "tp=8"}) {
        for (const char* model : {"llama", "gpt2", "gemma2", "bloom", "falcon", "mixtral", "llama4", "deepseek_v3"}) {
            ShardedCase c{model, mesh, model::Mode::insert};
            c.insert = std::string_view(mesh) == "sp=3" ? 6 : 4;
            c.axes = c.insert == 6 ? Axes{{"weight_storage_axis", {}}} : Axes{};
            c.tokens = 7;
            c.kernels = cases.size() % 2 == 0 ? kernels::KernelSet::onednn : kernels::KernelSet::reference;
            cases.push_back(c);
            c.current_fields = true;
            cases.push_back(c);
            if (std::string_view(mesh).starts_with("dp=1")) {
                c.axes = own;
                cases.push_back(c);
                c.mode = model::Mode::decode;
                c.insert = 0;
                c.axes.erase(c.axes.begin() + 3);  // one token is cut over nothing
                cases.push_back(c);
            }
        }
    }
}

/// Latent attention: every provider has a decode step of its own. In f32 only, because of the experts.
inline void add_latent_cases(std::vector<ShardedCase>& cases) {
    using backend::ProviderChoice;
    using Axes = std::vector<std::pair<std::string, partition::SpecEntry>>;
    const Axes megatron = {{"hidden_state_axis", {}}};
    const Axes whole_cache = {{"key_sequence_axis", {}}, {"generation_key_sequence_axis", {}}};
    for (const auto& [mesh, axes] :
         std::vector<std::pair<std::string, Axes>>{{"tp=2", {}},
                                                   {"tp=2", megatron},
                                                   {"dp=2", {}},
                                                   {"sp=2", {}},
                                                   {"sp=2", whole_cache},
                                                   {"fsdp=2", {}},
                                                   {"ep=2", {{"batch_axis", {"ep"}}}},
                                                   {"tp=4", {}},
                                                   {"tp=4", megatron},
                                                   {"sp=4", {}},
                                                   {"fsdp=2,tp=2", megatron},
                                                   {"sp=2,tp=2", {}},
                                                   {"sp=2,tp=2", megatron},
                                                   {"sp=2,fsdp=2", {}},
                                                   {"ep=2,tp=2", {{"hidden_state_axis", {}}, {"batch_axis", {"ep"}}}},
                                                   {"tp=8", megatron},
                                                   {"fsdp=2,sp=2,tp=2", {}},
                                                   {"dp=2,ep=2,tp=2", {{"batch_axis", {"dp", "ep"}}}}}) {
        for (const char* model : {"deepseek_v2", "deepseek_v3"}) {
            for (const auto provider : {ProviderChoice::local, ProviderChoice::fused}) {
                cases.push_back({model, mesh, model::Mode::prefill, tensor::DType::f32, axes, provider});
                cases.push_back({model, mesh, model::Mode::decode, tensor::DType::f32, axes, provider});
            }
            ShardedCase absorbed{model, mesh, model::Mode::decode, tensor::DType::f32, axes};  // inference or fused
            absorbed.kernels = kernels::KernelSet::onednn;
            absorbed.compat = partition::Compat::current;
            cases.push_back(absorbed);
        }
    }
}

/// Queries and keys over a sequence axis, in each way and order: full and grouped heads, learned positions, rope,
/// windows that end within a block and beyond it, ALiBi; with heads over tp, and fewer key/value heads than devices.
inline void add_sequence_cases(std::vector<ShardedCase>& cases) {
    using plan::CpCommType;
    const std::vector<std::pair<std::string, partition::SpecEntry>> whole_weights = {{"weight_storage_axis", {}}};
    for (const char* mesh : {"sp=2", "sp=3", "sp=4", "sp=2,tp=2", "tp=2,sp=2", "sp=8", "sp=4,tp=2", "dp=2,sp=2,tp=2"}) {
        const bool three = std::string(mesh) == "sp=3";  // divides neither heads nor weights
        for (const CpCommType type : {CpCommType::all_gather, CpCommType::p2p, CpCommType::a2a}) {
            for (const char* model : {"llama", "gpt2", "gemma2", "bloom", "falcon"}) {
                for (const bool zigzag : {false, true}) {
                    ShardedCase c{.model = model, .mesh = mesh, .batch = 2, .tokens = 48};
                    c.axes = three ? whole_weights : c.axes;
                    c.cp_comm_type = three && type == CpCommType::a2a ? CpCommType::automatic : type;
                    c.zigzag = zigzag;
                    cases.push_back(c);
                }
            }
            ShardedCase bf16{.model = "llama", .mesh = mesh, .dtype = tensor::DType::bf16, .batch = 2, .tokens = 48};
            bf16.axes = three ? whole_weights : bf16.axes;
            bf16.cp_comm_type = three ? CpCommType::p2p : type;
            bf16.zigzag = true;
            bf16.cache = 48;
            bf16.kernels = kernels::KernelSet::onednn;
            cases.push_back(bf16);
        }
    }
}

/// int8 weights of the provider inference: cut along outputs and inputs, stored over fsdp and sp.
inline void add_int8_cases(std::vector<ShardedCase>& cases) {
    using Axes = std::vector<std::pair<std::string, partition::SpecEntry>>;
    for (const char* mesh : {"dp=2", "tp=2", "fsdp=2", "sp=2", "tp=4", "fsdp=2,tp=2", "sp=2,tp=2", "tp=8"}) {
        for (const char* model : {"llama"}) {
            for (const auto mode : {model::Mode::prefill, model::Mode::decode}) {
                ShardedCase c{model, mesh, mode};
                c.axes = cases.size() % 2 == 0 ? Axes{{"hidden_state_axis", {}}} : Axes{};
                c.kernels = cases.size() % 3 == 0 ? kernels::KernelSet::onednn : kernels::KernelSet::reference;
                c.compat = partition::Compat::current;
                c.int8 = true;
                cases.push_back(c);
            }
        }
        ShardedCase bf16{"llama", mesh, model::Mode::decode, tensor::DType::bf16};
        bf16.int8 = true;
        cases.push_back(bf16);
    }
}

/// Every family and mode over every kind of axis, then cases of their own.
inline std::vector<ShardedCase> sharded_cases() {
    std::vector<ShardedCase> cases;
    for (const char* mesh : {"dp=2", "fsdp=2", "tp=2", "sp=2", "dp=2,tp=2", "fsdp=2,tp=2", "sp=2,tp=2", "tp=4", "sp=4",
                             "dp=2,fsdp=2,tp=2", "dp=2,sp=2,tp=2", "fsdp=2,sp=2,tp=2", "tp=8"}) {
        for (const char* model : {"llama", "gpt2", "gemma2", "falcon", "bloom", "olmo2"}) {
            cases.push_back({model, mesh});
            cases.push_back({model, mesh, model::Mode::decode});
        }
        cases.push_back({"llama", mesh, model::Mode::prefill, tensor::DType::bf16});
        cases.push_back({"llama", mesh, model::Mode::decode, tensor::DType::bf16});
        ShardedCase onednn{"llama", mesh};
        onednn.kernels = kernels::KernelSet::onednn;
        cases.push_back(onednn);
        cases.push_back({"llama", mesh, model::Mode::prefill, tensor::DType::f32, {{"hidden_state_axis", {}}}});
    }
    add_expert_cases(cases);
    add_chunk_and_padding_cases(cases);
    add_dispatch_cases(cases);
    add_expert_family_cases(cases);
    add_further_expert_cases(cases);
    add_insert_cases(cases);
    add_latent_cases(cases);
    add_sequence_cases(cases);
    add_int8_cases(cases);
    return cases;
}

}  // namespace shardplan::test
