// What the configs of most decoder families have alike: sizes, biases, activation, windows, rope, names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/field_reader.h"
#include "model/model_spec.h"
#include "model/rope_fields.h"

namespace shardplan::model {

struct SizeDefaults {
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

/// rms_norm_eps or layer_norm_eps(ilon).
void read_norm(FieldReader& fields, ModelSpec& model, NormKind kind, double eps, bool bias);

/// The activation under hidden_act or activation_function; unknown names: SP1008.
void read_activation(FieldReader& fields, ModelSpec& model, std::string_view fallback);
/// Normalises the spelling ("swish" is "silu"); `keys` is where it stands.
std::string known_activation(FieldReader& fields, FieldReader::Keys keys, std::string_view fallback);

/// The share of each head that rotates, as a number of dimensions (0 when the sizes are wrong).
std::int64_t partial_rotary_dim(FieldReader& fields, const ModelSpec& model, double fallback);

void set_qkv_bias(ModelSpec& model, bool bias);
void set_linear_bias(ModelSpec& model, bool bias);  ///< q, k, v, out, up, down

/// Windows of `window` keys in the layers for which `sliding` holds; layer_types of the config decides when present.
void set_windows(FieldReader& fields, ModelSpec& model, std::int64_t window,
                 const std::function<bool(std::int64_t layer)>& sliding);

/// model.embed_tokens, model.layers.{}.self_attn.q_proj, .mlp.gate_proj ...: llama and all that follow it.
void use_llama_names(ModelSpec& model);

/// SP2002 at `keys`: "`what`" of this family is not supported.
void unsupported_feature(FieldReader& fields, const ModelSpec& model, FieldReader::Keys keys, std::string_view what);

}  // namespace shardplan::model
