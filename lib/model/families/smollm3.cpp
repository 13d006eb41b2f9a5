// SmolLM 3: llama in which every fourth layer has no positions.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

/// no_rope_layers holds 1 where positions are used (transformers' naming notwithstanding).
void read_positions(FieldReader& fields, ModelSpec& model) {
    const std::int64_t interval = fields.size_or({"no_rope_layer_interval"}, 4);
    const ConfigValue* value = fields.find({"no_rope_layers"});
    const ConfigValue::Array* list = value != nullptr ? value->array() : nullptr;
    if (value != nullptr && (list == nullptr || list->size() != model.layers.size())) {
        fields.report("SP2003", {"no_rope_layers"}, "no_rope_layers must hold 0 or 1 for each layer");
        return;
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const std::int64_t* flag = list != nullptr ? (*list)[i].integer() : nullptr;
        if (list != nullptr && flag == nullptr) {
            fields.wrong_type((*list)[i], "0 or 1");
            return;
        }
        model.layers[i].rope = flag != nullptr ? *flag != 0 : (static_cast<std::int64_t>(i) + 1) % interval != 0;
    }
}

}  // namespace

void read_smollm3(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 4;
    defaults.max_positions = 32768;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_mlp_bias(model, fields.flag_or({"mlp_bias"}, false));
    set_rope(fields, model, model.attention.head_dim, 2e6);
    read_positions(fields, model);
    const bool slides = fields.flag_or({"use_sliding_window"}, false);
    const std::int64_t window = read_window(fields, 0);
    set_windows(fields, model, slides ? window : 0,
                [&](std::int64_t layer) { return !model.layers[static_cast<std::size_t>(layer)].rope; });
    use_llama_names(model);
}

}  // namespace shardplan::model
