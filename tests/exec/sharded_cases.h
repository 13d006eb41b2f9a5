// The table of sharded runs. A case runs where its mesh has as many devices as there are ranks.
#pragma once

#include <fmt/format.h>

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
    std::int64_t batch = 8;
    std::int64_t tokens = 8;
    std::int64_t cache = 0;
    plan::CpCommType cp_comm_type = plan::CpCommType::automatic;
    bool zigzag = false;

    std::string name() const {
        std::string text =
            fmt::format("{} on {}, {} {}", model, mesh, model::to_string(mode), tensor::to_string(dtype));
        for (const auto& [field, entry] : axes) {
            text += fmt::format(", {} = {}", field, partition::to_string(entry));
        }
        if (cp_comm_type != plan::CpCommType::automatic || zigzag) {
            text += fmt::format(", {}{}", plan::to_string(cp_comm_type), zigzag ? " in zig-zag" : "");
        }
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
    add_sequence_cases(cases);
    return cases;
}

}  // namespace shardplan::test
