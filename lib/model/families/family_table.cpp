#include <array>

#include "model/families/family.h"

namespace shardplan::model {
namespace {

constexpr auto table = std::to_array<FamilyEntry>({
    {"PanguEmbedded", "internlm", read_internlm},
    {"RefinedWeb", "falcon", read_falcon},
    {"RefinedWebModel", "falcon", read_falcon},
    {"baichuan", "baichuan", read_baichuan},
    {"bloom", "bloom", read_bloom},
    {"cohere", "cohere", read_cohere},
    {"cohere2", "cohere", read_cohere2},
    {"dbrx", "dbrx", read_dbrx, true},
    {"deepseek_v2", "deepseek", read_deepseek_v2, true, true},
    {"deepseek_v3", "deepseek", read_deepseek_v3, true, true},
    {"deepseek_vl_v2", "deepseek", read_deepseek_v2, true, true},
    {"falcon", "falcon", read_falcon},
    {"gemma", "gemma", read_gemma},
    {"gemma2", "gemma2", read_gemma2},
    {"gemma3", "gemma3", read_gemma3},
    {"gemma3_text", "gemma3", read_gemma3},
    {"glm", "glm", read_glm},
    {"glm4", "glm", read_glm4},
    {"glm4_moe", "glm4_moe", read_glm4_moe, true},
    {"gpt2", "gpt2", read_gpt2},
    {"gpt_bigcode", "gpt_bigcode", read_gpt_bigcode},
    {"gpt_neo", "gpt_neo", read_gpt_neo},
    {"gpt_neox", "gpt_neox", read_gpt_neox},
    {"gpt_neox_reward_model", "gpt_neox", read_gpt_neox_reward_model},
    {"gpt_oss", "gpt_oss", read_gpt_oss, true},
    {"gptj", "gptj", read_gptj},
    {"granite", "granite", read_granite},
    {"granitemoe", "granitemoe", read_granitemoe, true},
    {"granitemoeshared", "granitemoe", read_granitemoe, true},
    {"grok-1", "grok", read_grok, true},
    {"internlm", "internlm", read_internlm},
    {"internlm2", "internlm2", read_internlm2},
    {"kimi_k2", "deepseek", read_deepseek_v3, true, true},
    {"llama", "llama", read_llama},
    {"llama4", "llama4", read_llama4, true},
    {"llama4_text", "llama4", read_llama4, true},
    {"mimo", "qwen2", read_qwen2},
    {"minicpm", "minicpm", read_minicpm, true},
    {"minimax_m2", "minimax_m2", read_minimax_m2, true},
    {"ministral", "mistral", read_mistral},
    {"ministral3", "mistral", read_mistral},
    {"mistral", "mistral", read_mistral},
    {"mixtral", "mixtral", read_mixtral, true},
    {"mpt", "mpt", read_mpt},
    {"olmo", "olmo", read_olmo},
    {"olmo2", "olmo2", read_olmo2},
    {"olmo3", "olmo2", read_olmo3},
    {"olmoe", "olmoe", read_olmoe, true},
    {"opt", "opt", read_opt},
    {"orion", "orion", read_orion},
    {"phi", "phi", read_phi},
    {"phi-msft", "phi", read_phi_msft},
    {"phi3", "phi3", read_phi3},
    {"phi3_v", "phi3", read_phi3},
    {"phimoe", "phimoe", read_phimoe, true},
    {"qwen", "qwen", read_qwen},
    {"qwen2", "qwen2", read_qwen2},
    {"qwen2_moe", "qwen_moe", read_qwen2_moe, true},
    {"qwen3", "qwen3", read_qwen3},
    {"qwen3_moe", "qwen_moe", read_qwen3_moe, true},
    {"smollm3", "smollm3", read_smollm3},
    {"stablelm", "stablelm", read_stablelm},
    {"starcoder2", "starcoder2", read_starcoder2},
    {"step3p5", "step3p", read_step3p, true},
    {"step3p7", "step3p", read_step3p, true},
});

}  // namespace

std::span<const FamilyEntry> family_table() {
    return table;
}

}  // namespace shardplan::model
