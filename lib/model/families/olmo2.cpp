// OLMo 2 and 3: norms after the sublayers only, q and k normed over all heads; 3 slides in three of four layers.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_olmo2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = model.model_type == "olmo3" ? 65536 : 2048;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_rope(fields, model, model.attention.head_dim);
    use_llama_names(model);
    set_head_norms(model);
    model.attention.qk_norm = QkNorm::full;
    TensorNames& n = model.names;
    n.pre_attention_norm.clear();
    n.pre_mlp_norm.clear();
    n.post_attention_norm = "model.layers.{}.post_attention_layernorm";
    n.post_mlp_norm = "model.layers.{}.post_feedforward_layernorm";
}

void read_olmo3(FieldReader& fields, ModelSpec& model) {
    read_olmo2(fields, model);
    set_windows(fields, model, read_window(fields, 4096), [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
    const ConfigValue* scaling = fields.find({"rope_scaling", "rope_parameters"});
    if (scaling == nullptr) {
        return;
    }
    // Scaling is for the layers that see everything.
    RopeDefaults local;
    local.theta = fields.positive_or({"rope_theta"}, 10000.0);
    local.scaled = false;
    local.layer_type = "sliding_attention";
    model.attention.local_rope = read_rope(fields, model.attention.head_dim, local);
    for (LayerSpec& layer : model.layers) {
        layer.local_rope = layer.sliding_window > 0;
    }
}

}  // namespace shardplan::model
