#include "model/unsupported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace shardplan::model {
namespace {

struct Kind {
    std::string_view name;
    std::string_view types;  ///< separated by blanks, with one at each end
};

constexpr auto kinds = std::to_array<Kind>({
    {"mixture of experts of another form",
     " jetmoe qwen3_vl_moe qwen3_vl_moe_text arctic ernie4_5_moe "
     "flex_olmo dots1 hunyuan_v1_moe nllb-moe "},
    {"latent attention to a choice of the tokens (an indexer)", " deepseek_v32 glm_moe_dsa "},
    {"multi-head latent attention in layers of another form", " minicpm3 longcat_flash "},
    {"encoder-decoder",
     " t5 mt5 umt5 longt5 switch_transformers bart mbart pegasus marian m2m_100 blenderbot led prophetnet whisper "
     "speech_to_text bigbird_pegasus t5gemma "},
    {"encoder",
     " bert roberta xlm-roberta albert distilbert electra deberta deberta-v2 camembert modernbert clip "
     "clip_text_model siglip siglip_text_model vit longformer "},
    {"state-space, recurrent or linear attention",
     " mamba mamba2 falcon_mamba jamba rwkv rwkv7 gla nemotron_h bamba zamba zamba2 recurrent_gemma qwen3_next "
     "qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text minimax minimax_m1 yuan lfm2 falcon_h1 granitemoehybrid "
     "retnet "},
    {"layers of different shapes (block_configs)", " nemotron-nas "},
    {"vision or speech beside text in one config",
     " phi4mm git kimi_k25 llava mllama mllama_text_model qwen2_vl qwen2_5_vl "},
});

}  // namespace

std::string_view unsupported_kind(std::string_view model_type) {
    if (model_type.empty() || model_type.find(' ') != std::string_view::npos) {
        return {};
    }
    const std::string word = fmt::format(" {} ", model_type);
    const auto it = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const Kind& kind) { return kind.types.find(word) != std::string_view::npos; });
    return it == kinds.end() ? std::string_view{} : it->name;
}

std::string_view unsupported_fields(const ConfigValue& config, bool experts_known, bool latent_known,
                                    std::string_view& key) {
    for (const std::string_view experts : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}) {
        const ConfigValue* value = config.find(experts);
        const std::int64_t* count = value != nullptr ? value->integer() : nullptr;
        if (!experts_known && count != nullptr && *count > 1) {
            key = experts;
            return "mixture of experts";
        }
    }
    for (const auto& [field, kind] :
         {std::pair<std::string_view, std::string_view>{"kv_lora_rank", "multi-head latent attention"},
          {"index_n_heads", "latent attention to a choice of the tokens (an indexer)"},
          {"moe_latent_size", "experts on hidden states of another size (moe_latent_size)"},
          {"block_configs", "layers of different shapes (block_configs)"}}) {
        const ConfigValue* value = config.find(field);
        if (value != nullptr && !value->is_null() && !(latent_known && field == "kv_lora_rank")) {
            key = field;
            return kind;
        }
    }
    for (const auto& [field, kind] :
         {std::pair<std::string_view, std::string_view>{"is_encoder_decoder", "encoder-decoder"},
          {"qk_l2_norm", "an L2 norm of queries and keys, which only llama4 has (use_qk_norm)"}}) {
        const ConfigValue* flag = config.find(field);
        if (flag != nullptr && flag->boolean() != nullptr && *flag->boolean()) {
            key = field;
            return kind;
        }
    }
    return {};
}

}  // namespace shardplan::model
