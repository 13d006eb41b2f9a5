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

    std::string name() const {
        std::string text =
            fmt::format("{} on {}, {} {}", model, mesh, model::to_string(mode), tensor::to_string(dtype));
        for (const auto& [field, entry] : axes) {
            text += fmt::format(", {} = {}", field, partition::to_string(entry));
        }
        return text;
    }
};

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
    return cases;
}

}  // namespace shardplan::test
