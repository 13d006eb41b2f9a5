// What the configs of most decoder families have alike: sizes, biases, activation, windows, rope, names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/field_reader.h"
#include "model/model_spec.h"
#include "model/rope_fields.h"

namespace shardplan::model {

struct SizeDefaults {
    std::optional<std::int64_t>
        vocab;  ///< of an absent field, when all sizes of the family have it; nullopt = required
    std::optional<std::int64_t> kv_heads;  ///< of an absent field; nullopt = as many as heads (an explicit null always)
    std::optional<std::int64_t> head_dim;  ///< of an absent field; nullopt = hidden / heads
    std::int64_t max_positions = 2048;
    std::int64_t intermediate_per_hidden =
        0;  ///< of an absent field, in multiples of hidden; 0 = the field is required
    bool tied = false;
};

/// hidden, vocab, layers, heads, kv heads, head_dim, intermediate, positions and tied embeddings, under all their
/// names. attention.scale becomes head_dim^-1/2; every layer attends to everything.
void read_sizes(FieldReader& fields, ModelSpec& model, const SizeDefaults& defaults);

/// The config is written as llm-analysis does: hidden_dim, ffn_embed_dim, n_head ... and nothing about norms or biases.
bool has_llm_analysis_names(const ConfigValue& config);

/// rms_norm_eps or layer_norm_eps(ilon).
void read_norm(FieldReader& fields, ModelSpec& model, NormKind kind, double eps, bool bias);

/// The activation under hidden_act or activation_function; unknown names: SP1008.
void read_activation(FieldReader& fields, ModelSpec& model, std::string_view fallback);
/// Normalises the spelling ("swish" is "silu"); `keys` is where it stands.
std::string known_activation(FieldReader& fields, FieldReader::Keys keys, std::string_view fallback);

/// The share of each head that rotates, as a number of dimensions (0 when the sizes are wrong).
std::int64_t partial_rotary_dim(FieldReader& fields, const ModelSpec& model, double fallback);

void set_qkv_bias(ModelSpec& model, bool bias);
void set_attention_bias(ModelSpec& model, bool bias);  ///< q, k, v, out
void set_mlp_bias(ModelSpec& model, bool bias);        ///< gate, up, down
void set_linear_bias(ModelSpec& model, bool bias);     ///< q, k, v, out, up, down

/// sliding_window; null = 0 (all keys), absent = `if_absent`.
std::int64_t read_window(FieldReader& fields, std::int64_t if_absent);

/// Which layers are of `kind` ("sliding_attention"): as layer_types says where it is present, which may name
/// "full_attention" beside it only, else as `if_absent` does.
std::vector<bool> layers_of_kind(FieldReader& fields, const ModelSpec& model, std::string_view kind,
                                 const std::function<bool(std::int64_t)>& if_absent);

/// Windows of `window` keys in the layers for which `sliding` holds; layer_types of the config decides when present.
void set_windows(FieldReader& fields, ModelSpec& model, std::int64_t window,
                 const std::function<bool(std::int64_t layer)>& sliding);

/// model.embed_tokens, model.layers.{}.self_attn.q_proj, .mlp.gate_proj ...: llama and all that follow it.
void use_llama_names(ModelSpec& model);

/// rope over `rotary_dim` dimensions; model.max_positions must have been read.
void set_rope(FieldReader& fields, ModelSpec& model, std::int64_t rotary_dim, double theta = 10000.0);

/// transformer.wte, transformer.h.{}.attn.c_attn ...: gpt2 and gpt_bigcode.
void use_gpt2_names(ModelSpec& model);

/// Norms over each head of q and k, of the kind of model.norm, under q_norm and k_norm of self_attn.
void set_head_norms(ModelSpec& model);

/// use_sliding_window, max_window_layers and sliding_window of Qwen.
void read_qwen_windows(FieldReader& fields, ModelSpec& model);

/// What all of Gemma shares; reads sizes with `defaults`.
void read_gemma_fields(FieldReader& fields, ModelSpec& model, const SizeDefaults& defaults);
void use_gemma2_norms(ModelSpec& model);
/// The soft caps (0 = none by default) and query_pre_attn_scalar.
void read_soft_caps(FieldReader& fields, ModelSpec& model, double attention, double logits);

/// SP2002 at `keys`: "`what`" of this family is not supported.
void unsupported_feature(FieldReader& fields, const ModelSpec& model, FieldReader::Keys keys, std::string_view what);

}  // namespace shardplan::model
