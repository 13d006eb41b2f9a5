// SmolLM 3: llama in which every fourth layer has no positions.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/position_layers.h"

namespace shardplan::model {

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
    read_position_layers(fields, model);
    const bool slides = fields.flag_or({"use_sliding_window"}, false);
    const std::int64_t window = read_window(fields, 0);
    set_windows(fields, model, slides ? window : 0,
                [&](std::int64_t layer) { return !model.layers[static_cast<std::size_t>(layer)].rope; });
    use_llama_names(model);
}

}  // namespace shardplan::model
