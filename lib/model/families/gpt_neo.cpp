// GPT-Neo: learned positions, unscaled scores, every other layer local; attention_types lists patterns and repeats.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {
namespace {

/// [[["global", "local"], 12], ...]: one flag (is local) per layer; empty when the form is wrong.
std::vector<bool> expand(const ConfigValue& types, std::size_t layers) {
    std::vector<bool> local;
    const ConfigValue::Array* entries = types.array();
    for (std::size_t e = 0; entries != nullptr && e < entries->size(); ++e) {
        const ConfigValue::Array* entry = (*entries)[e].array();
        const bool pair = entry != nullptr && entry->size() == 2;
        const ConfigValue::Array* pattern = pair ? (*entry)[0].array() : nullptr;
        const std::int64_t* repeats = pair ? (*entry)[1].integer() : nullptr;
        if (pattern == nullptr || pattern->empty() || repeats == nullptr) {
            return {};
        }
        for (std::int64_t i = 0; i < *repeats && local.size() <= layers; ++i) {
            for (const ConfigValue& name : *pattern) {
                local.push_back(name.string() != nullptr && *name.string() == "local");
            }
        }
    }
    return local;
}

}  // namespace

void read_gpt_neo(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 4;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_new");
    set_mlp_bias(model, true);
    model.mlp.gated = false;
    model.attention.out_bias = true;
    model.attention.scale = 1.0;
    model.position_rows = model.max_positions;
    const std::int64_t window = fields.size_or({"window_size"}, 256);
    const ConfigValue* types = fields.find({"attention_types"});
    const std::vector<bool> local = types != nullptr ? expand(*types, model.layers.size()) : std::vector<bool>{};
    if (types != nullptr && local.size() != model.layers.size()) {
        fields.report("SP2003", {"attention_types"}, "attention_types must give \"global\" or \"local\" to each layer");
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const bool is_local = local.size() == model.layers.size() ? local[i] : i % 2 == 1;
        model.layers[i].sliding_window = is_local ? window : 0;
    }
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.position_embedding = "transformer.wpe";
    n.q = "transformer.h.{}.attn.attention.q_proj";
    n.k = "transformer.h.{}.attn.attention.k_proj";
    n.v = "transformer.h.{}.attn.attention.v_proj";
    n.out = "transformer.h.{}.attn.attention.out_proj";
    n.up = "transformer.h.{}.mlp.c_fc";
    n.down = "transformer.h.{}.mlp.c_proj";
    n.pre_attention_norm = "transformer.h.{}.ln_1";
    n.pre_mlp_norm = "transformer.h.{}.ln_2";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
    n.ignored.emplace_back(R"(transformer\.h\.\d+\.attn\.attention\.(bias|masked_bias))");
}

}  // namespace shardplan::model
