// The family readers: each fills a ModelSpec from the fields of one kind of Hugging Face config. A reader knows its
// family's keys, the defaults of the configuration class in transformers for absent fields, and the tensor names of the
// checkpoints. It reads every field even after an error, so that all problems are reported at once.
#pragma once

#include <span>
#include <string_view>

#include "model/field_reader.h"
#include "model/model_spec.h"

namespace shardplan::model {

using FamilyReader = void (*)(FieldReader& fields, ModelSpec& model);

struct FamilyEntry {
    std::string_view model_type;
    std::string_view family;
    FamilyReader read = nullptr;
    bool experts = false;  ///< it may have experts
    bool latent = false;   ///< it may have latent attention
};

/// Sorted by model_type.
std::span<const FamilyEntry> family_table();

void read_baichuan(FieldReader& fields, ModelSpec& model);
void read_bloom(FieldReader& fields, ModelSpec& model);
void read_cohere(FieldReader& fields, ModelSpec& model);
void read_cohere2(FieldReader& fields, ModelSpec& model);
void read_dbrx(FieldReader& fields, ModelSpec& model);
void read_deepseek_v2(FieldReader& fields, ModelSpec& model);
void read_deepseek_v3(FieldReader& fields, ModelSpec& model);
void read_falcon(FieldReader& fields, ModelSpec& model);
void read_gemma(FieldReader& fields, ModelSpec& model);
void read_gemma2(FieldReader& fields, ModelSpec& model);
void read_gemma3(FieldReader& fields, ModelSpec& model);
void read_glm(FieldReader& fields, ModelSpec& model);
void read_glm4(FieldReader& fields, ModelSpec& model);
void read_glm4_moe(FieldReader& fields, ModelSpec& model);
void read_gpt2(FieldReader& fields, ModelSpec& model);
void read_gpt_bigcode(FieldReader& fields, ModelSpec& model);
void read_gpt_neo(FieldReader& fields, ModelSpec& model);
void read_gpt_neox(FieldReader& fields, ModelSpec& model);
void read_gpt_neox_reward_model(FieldReader& fields, ModelSpec& model);
void read_gpt_oss(FieldReader& fields, ModelSpec& model);
void read_gptj(FieldReader& fields, ModelSpec& model);
void read_granite(FieldReader& fields, ModelSpec& model);
void read_granitemoe(FieldReader& fields, ModelSpec& model);
void read_grok(FieldReader& fields, ModelSpec& model);
void read_internlm(FieldReader& fields, ModelSpec& model);
void read_internlm2(FieldReader& fields, ModelSpec& model);
void read_llama(FieldReader& fields, ModelSpec& model);
void read_llama4(FieldReader& fields, ModelSpec& model);
void read_minicpm(FieldReader& fields, ModelSpec& model);
void read_minimax_m2(FieldReader& fields, ModelSpec& model);
void read_mistral(FieldReader& fields, ModelSpec& model);
void read_mixtral(FieldReader& fields, ModelSpec& model);
void read_mpt(FieldReader& fields, ModelSpec& model);
void read_olmo(FieldReader& fields, ModelSpec& model);
void read_olmo2(FieldReader& fields, ModelSpec& model);
void read_olmo3(FieldReader& fields, ModelSpec& model);
void read_olmoe(FieldReader& fields, ModelSpec& model);
void read_opt(FieldReader& fields, ModelSpec& model);
void read_orion(FieldReader& fields, ModelSpec& model);
void read_phi(FieldReader& fields, ModelSpec& model);
void read_phi_msft(FieldReader& fields, ModelSpec& model);
void read_phi3(FieldReader& fields, ModelSpec& model);
void read_phimoe(FieldReader& fields, ModelSpec& model);
void read_qwen(FieldReader& fields, ModelSpec& model);
void read_qwen2(FieldReader& fields, ModelSpec& model);
void read_qwen2_moe(FieldReader& fields, ModelSpec& model);
void read_qwen3(FieldReader& fields, ModelSpec& model);
void read_qwen3_moe(FieldReader& fields, ModelSpec& model);
void read_smollm3(FieldReader& fields, ModelSpec& model);
void read_stablelm(FieldReader& fields, ModelSpec& model);
void read_starcoder2(FieldReader& fields, ModelSpec& model);
void read_step3p(FieldReader& fields, ModelSpec& model);

}  // namespace shardplan::model
