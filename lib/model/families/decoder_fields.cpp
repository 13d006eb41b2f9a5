#include "model/families/decoder_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace shardplan::model {
namespace {

constexpr std::int64_t most_layers = 100'000;
constexpr std::int64_t most_heads = 1 << 20;
constexpr std::int64_t largest_head = 1 << 16;

void read_heads(FieldReader& fields, ModelSpec& model, const SizeDefaults& defaults) {
    AttentionSpec& a = model.attention;
    a.heads = fields.size({"num_attention_heads", "n_head", "n_heads", "num_heads"}, most_heads);
    const FieldReader::Keys kv_keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"};
    const bool as_heads = fields.is_null(kv_keys) || !defaults.kv_heads;
    a.kv_heads = fields.optional_size(kv_keys, most_heads).value_or(as_heads ? a.heads : *defaults.kv_heads);
    const FieldReader::Keys dim_keys = {"head_dim", "kv_channels", "attention_head_dim"};
    auto head_dim = fields.optional_size(dim_keys, largest_head);
    if (!head_dim && !fields.is_null(dim_keys)) {
        head_dim = defaults.head_dim;
    }
    if (!head_dim && fields.ok() && model.hidden % a.heads != 0) {
        fields.report("SP2003", {"num_attention_heads", "n_head", "n_heads", "num_heads"},
                      fmt::format("hidden_size {} is not a multiple of the {} heads and there is no head_dim",
                                  model.hidden, a.heads),
                      "change hidden_size or num_attention_heads, or add head_dim");
    }
    a.head_dim = head_dim.value_or(std::max<std::int64_t>(model.hidden / a.heads, 1));
    if (fields.ok() && a.head_dim > largest_head) {
        fields.report("SP1006", {"hidden_size", "num_attention_heads"},
                      fmt::format("heads of {} dimensions are too large, at most {}", a.head_dim, largest_head));
    }
    if (fields.ok() && a.heads % a.kv_heads != 0) {
        fields.report("SP2003", kv_keys,
                      fmt::format("{} key/value heads{} do not divide the {} attention heads", a.kv_heads,
                                  fields.find(kv_keys) == nullptr ? " (the default of the family)" : "", a.heads),
                      "set num_key_value_heads to a divisor of num_attention_heads");
    }
    a.head_dim = std::min(a.head_dim, largest_head);
    a.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
}

std::int64_t read_vocab(FieldReader& fields, const SizeDefaults& defaults) {
    const FieldReader::Keys keys = {"vocab_size", "padded_vocab_size"};
    if (!defaults.vocab || fields.find(keys) != nullptr) {
        return fields.size(keys);
    }
    fields.diagnostics().report(
        "SP2007", fmt::format("vocab_size is absent: {}, the default of the family, is assumed", *defaults.vocab),
        fields.object().pointer, "add vocab_size");
    return *defaults.vocab;
}

}  // namespace

bool has_llm_analysis_names(const ConfigValue& config) {
    return config.find("hidden_dim") != nullptr || config.find("ffn_embed_dim") != nullptr;
}

void read_sizes(FieldReader& fields, ModelSpec& model, const SizeDefaults& defaults) {
    model.hidden = fields.size({"hidden_size", "n_embd", "d_model", "n_embed", "hidden_dim"});
    model.vocab = read_vocab(fields, defaults);
    model.layers.resize(
        static_cast<std::size_t>(fields.size({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, most_layers)));
    read_heads(fields, model, defaults);
    const FieldReader::Keys intermediate = {"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "d_ff",
                                            "ffn_embed_dim"};
    model.mlp.intermediate = defaults.intermediate_per_hidden == 0
                                 ? fields.size(intermediate)
                                 : fields.size_or(intermediate, model.hidden * defaults.intermediate_per_hidden);
    model.max_positions = fields.size_or({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
                                          "max_sequence_length", "model_max_length"},
                                         defaults.max_positions);
    model.tied_embeddings = fields.flag_or({"tie_word_embeddings"}, defaults.tied);
}

void read_norm(FieldReader& fields, ModelSpec& model, NormKind kind, double eps, bool bias) {
    model.norm.kind = kind;
    model.norm.has_bias = bias;
    model.norm.eps =
        fields.positive_or({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}, eps);
}

std::string known_activation(FieldReader& fields, FieldReader::Keys keys, std::string_view fallback) {
    static constexpr auto known = std::to_array<std::pair<std::string_view, std::string_view>>({
        {"gelu", "gelu"},
        {"gelu_fast", "gelu_new"},
        {"gelu_new", "gelu_new"},
        {"gelu_pytorch_tanh", "gelu_pytorch_tanh"},
        {"quick_gelu", "quick_gelu"},
        {"relu", "relu"},
        {"silu", "silu"},
        {"swish", "silu"},
    });
    const std::string name = fields.word_or(keys, fallback);
    const auto it = std::find_if(known.begin(), known.end(), [&](const auto& row) { return row.first == name; });
    if (it != known.end()) {
        return std::string(it->second);
    }
    std::string names;
    for (const auto& row : known) {
        names += (names.empty() ? "" : ", ") + std::string(row.first);
    }
    fields.report("SP1008", keys, fmt::format("activation \"{}\" is not known", name), "known: " + names);
    return std::string(fallback);
}

void read_activation(FieldReader& fields, ModelSpec& model, std::string_view fallback) {
    model.mlp.activation =
        known_activation(fields, {"hidden_act", "hidden_activation", "activation_function", "activation"}, fallback);
}

std::int64_t partial_rotary_dim(FieldReader& fields, const ModelSpec& model, double fallback) {
    const double share = fields.number_or({"partial_rotary_factor", "rotary_pct", "rope_pct"}, fallback, 0.0, 1.0);
    return static_cast<std::int64_t>(static_cast<double>(model.attention.head_dim) * share);
}

void set_qkv_bias(ModelSpec& model, bool bias) {
    model.attention.q_bias = bias;
    model.attention.k_bias = bias;
    model.attention.v_bias = bias;
}

void set_attention_bias(ModelSpec& model, bool bias) {
    set_qkv_bias(model, bias);
    model.attention.out_bias = bias;
}

void set_mlp_bias(ModelSpec& model, bool bias) {
    model.mlp.up_bias = bias;
    model.mlp.down_bias = bias;
}

void set_linear_bias(ModelSpec& model, bool bias) {
    set_attention_bias(model, bias);
    set_mlp_bias(model, bias);
}

void set_rope(FieldReader& fields, ModelSpec& model, std::int64_t rotary_dim, double theta) {
    if (fields.ok() && rotary_dim > model.attention.head_dim) {
        fields.report(
            "SP2003", {"rotary_dim"},
            fmt::format("{} rotary dimensions are more than the {} of a head", rotary_dim, model.attention.head_dim));
    }
    RopeDefaults defaults;
    defaults.theta = theta;
    defaults.max_positions = model.max_positions;
    model.attention.rope = read_rope(fields, rotary_dim, defaults);
}

std::int64_t read_window(FieldReader& fields, std::int64_t if_absent) {
    return fields.is_null({"sliding_window"}) ? 0 : fields.size_or({"sliding_window"}, if_absent);
}

std::vector<bool> layers_of_kind(FieldReader& fields, const ModelSpec& model, std::string_view kind,
                                 const std::function<bool(std::int64_t)>& if_absent) {
    const ConfigValue* types = fields.find({"layer_types"});
    const ConfigValue::Array* list = types != nullptr ? types->array() : nullptr;
    std::vector<bool> result;
    if (types != nullptr && (list == nullptr || list->size() != model.layers.size())) {
        fields.report("SP2003", {"layer_types"},
                      fmt::format("layer_types must name the kind of each of the {} layers", model.layers.size()));
        return std::vector<bool>(model.layers.size());
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        result.push_back(if_absent(static_cast<std::int64_t>(i)));
        if (list == nullptr) {
            continue;
        }
        const std::string* name = (*list)[i].string();
        result.back() = name != nullptr && *name == kind;
        if (!result.back() && (name == nullptr || *name != "full_attention")) {
            fields.fail();
            fields.diagnostics().report("SP2002",
                                        fmt::format("layers of kind {} are not supported", describe((*list)[i])),
                                        (*list)[i].pointer, fmt::format("supported: \"full_attention\", \"{}\"", kind));
            return std::vector<bool>(model.layers.size());
        }
    }
    return result;
}

void set_windows(FieldReader& fields, ModelSpec& model, std::int64_t window,
                 const std::function<bool(std::int64_t)>& sliding) {
    const std::vector<bool> slides = layers_of_kind(fields, model, "sliding_attention", sliding);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        model.layers[i].sliding_window = slides[i] ? window : 0;
    }
}

void use_llama_names(ModelSpec& model) {
    TensorNames& n = model.names;
    n.embedding = "model.embed_tokens";
    n.q = "model.layers.{}.self_attn.q_proj";
    n.k = "model.layers.{}.self_attn.k_proj";
    n.v = "model.layers.{}.self_attn.v_proj";
    n.out = "model.layers.{}.self_attn.o_proj";
    n.gate = "model.layers.{}.mlp.gate_proj";
    n.up = "model.layers.{}.mlp.up_proj";
    n.down = "model.layers.{}.mlp.down_proj";
    n.pre_attention_norm = "model.layers.{}.input_layernorm";
    n.pre_mlp_norm = "model.layers.{}.post_attention_layernorm";
    n.final_norm = "model.norm";
    n.lm_head = "lm_head";
}

void set_head_norms(ModelSpec& model) {
    model.attention.qk_norm = QkNorm::per_head;
    model.attention.qk_norm_spec = model.norm;
    model.names.q_norm = "model.layers.{}.self_attn.q_norm";
    model.names.k_norm = "model.layers.{}.self_attn.k_norm";
}

void unsupported_feature(FieldReader& fields, const ModelSpec& model, FieldReader::Keys keys, std::string_view what) {
    fields.report("SP2002", keys, fmt::format("{} of model type \"{}\" is not supported", what, model.model_type));
}

}  // namespace shardplan::model
