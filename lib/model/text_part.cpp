#include "model/text_part.h"

#include <string>

namespace shardplan::model {
namespace {

/// The parts beside the decoder in the checkpoints of llava, gemma3, mistral3, llama4, deepseek_vl_v2, kimi and others.
constexpr std::string_view other_parts =
    R"((model\.)?(vision_\w+|visual|vit|sam_model|vpm|resampler|multi_modal_projector|mm_projector|mlp1|projector|)"
    R"(connector|aligner|audio_\w+|speech_\w+|image_newline|tile_indicators|view_seperator|view_separator)(\..*)?)";

}  // namespace

std::string_view text_part_key(const ConfigValue& config) {
    for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
        const ConfigValue* nested = config.find(key);
        if (nested != nullptr && nested->is_object()) {
            return key;
        }
    }
    return "";
}

void use_text_part_names(ModelSpec& model, std::string_view outer_type) {
    TensorNames& n = model.names;
    if (!n.optional_prefix.empty()) {
        return;
    }
    const std::string word = outer_type == "deepseek_vl_v2" ? "language" : "language_model";
    n.optional_prefix = word + ".";
    for (std::string* name : {&n.embedding,
                              &n.position_embedding,
                              &n.embedding_norm,
                              &n.project_in,
                              &n.project_out,
                              &n.q,
                              &n.k,
                              &n.v,
                              &n.qkv,
                              &n.out,
                              &n.q_norm,
                              &n.k_norm,
                              &n.sinks,
                              &n.q_down,
                              &n.q_down_norm,
                              &n.kv_down,
                              &n.kv_down_norm,
                              &n.kv_up,
                              &n.gate,
                              &n.up,
                              &n.gate_up,
                              &n.down,
                              &n.router,
                              &n.router_correction,
                              &n.expert_gate,
                              &n.expert_up,
                              &n.expert_gate_up,
                              &n.expert_down,
                              &n.shared_gate,
                              &n.shared_up,
                              &n.shared_gate_up,
                              &n.shared_down,
                              &n.shared_router,
                              &n.pre_attention_norm,
                              &n.post_attention_norm,
                              &n.pre_mlp_norm,
                              &n.post_mlp_norm,
                              &n.final_norm,
                              &n.lm_head}) {
        if (!name->empty()) {
            name->insert(0, n.optional_prefix);
        }
    }
    for (std::string& pattern : n.ignored) {
        pattern = "(" + word + "\\.)?" + pattern;
    }
    n.ignored.push_back("(" + word + "\\.)?" + std::string(other_parts));
}

}  // namespace shardplan::model
