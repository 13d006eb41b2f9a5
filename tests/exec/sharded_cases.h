// The table of sharded runs. A case runs where its mesh has as many devices as there are ranks.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
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
    std::int64_t batch = 8;
    std::int64_t tokens = 8;

    std::string name() const {
        std::string text =
            fmt::format("{} on {}, {} {}", model, mesh, model::to_string(mode), tensor::to_string(dtype));
        for (const auto& [field, entry] : axes) {
            text += fmt::format(", {} = {}", field, partition::to_string(entry));
        }
        text += dispatcher == plan::TokenDispatcher::all_to_all   ? ", alltoall"
                : dispatcher == plan::TokenDispatcher::all_gather ? ", allgather"
                                                                  : "";
        text += grouped ? (*grouped ? ", grouped" : ", one by one") : "";
        return text;
    }
};

/// Experts over axes of their own and over those of the tokens, cut inside of the experts, stored over fsdp. In f32
/// only: a score that rounding moves may choose another expert.
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
        ShardedCase onednn{"mixtral", mesh, model::Mode::prefill, tensor::DType::f32, axes};
        onednn.kernels = kernels::KernelSet::onednn;
        cases.push_back(onednn);
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
    add_dispatch_cases(cases);
    add_expert_family_cases(cases);
    return cases;
}

}  // namespace shardplan::test
