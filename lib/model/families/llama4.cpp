// Llama 4 (text): layers with positions see chunks of the sequence and normalise queries and keys after the rotation,
// every fourth layer has no positions and sees everything; one expert per token, whose input is scaled, beside a shared
// one.
#include <fmt/format.h>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"
#include "model/families/position_layers.h"
#include "model/text_part.h"

namespace shardplan::model {
namespace {

void read_attention(FieldReader& fields, ModelSpec& model) {
    AttentionSpec& a = model.attention;
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_rope(fields, model, a.head_dim, 500000.0);
    a.rope.interleaved = true;
    read_position_layers(fields, model);
    const bool whole = fields.is_null({"attention_chunk_size"});
    const std::int64_t chunk = whole ? 0 : fields.size_or({"attention_chunk_size"}, 8192);
    const std::vector<bool> chunked = layers_of_kind(fields, model, "chunked_attention", [&](std::int64_t i) {
        return model.layers[static_cast<std::size_t>(i)].rope;
    });
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        model.layers[i].chunk = chunked[i] ? chunk : 0;
    }
    if (fields.flag_or({"use_qk_norm"}, true)) {
        a.qk_norm = QkNorm::l2;
        a.qk_norm_spec = model.norm;
        a.qk_norm_spec.has_weight = false;
    }
    // The first configs hold a number here.
    const ConfigValue* tuned = fields.find({"attn_temperature_tuning"});
    const bool number = tuned != nullptr && tuned->integer() != nullptr;
    if (number ? *tuned->integer() != 0 : fields.flag_or({"attn_temperature_tuning"}, true)) {
        a.temperature_scale = fields.positive_or({"attn_scale"}, 0.1);
        a.temperature_floor = fields.positive_or({"floor_scale"}, 8192.0);
    }
}

/// moe_layers, or every interleave_moe_layer_step-th layer.
void read_moe_layers(FieldReader& fields, ModelSpec& model) {
    const std::int64_t step = fields.size_or({"interleave_moe_layer_step"}, 1);
    const ConfigValue* list = fields.find({"moe_layers"});
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        model.layers[i].moe = list == nullptr && (static_cast<std::int64_t>(i) + 1) % step == 0;
    }
    if (list == nullptr) {
        return;
    }
    if (list->array() == nullptr) {
        fields.wrong_type(*list, "a list of layers");
        return;
    }
    for (const ConfigValue& value : *list->array()) {
        const std::int64_t* layer = value.integer();
        if (layer == nullptr || *layer < 0 || *layer >= model.layer_count()) {
            fields.report("SP1006", {"moe_layers"},
                          fmt::format("moe_layers names {}, which is none of the {} layers", describe(value),
                                      model.layer_count()));
            return;
        }
        model.layers[static_cast<std::size_t>(*layer)].moe = true;
    }
}

void use_llama4_names(ModelSpec& model) {
    use_llama_names(model);
    TensorNames& n = model.names;
    const std::string layer = "model.layers.{}.feed_forward.";
    n.gate = layer + "gate_proj";
    n.up = layer + "up_proj";
    n.down = layer + "down_proj";
    n.router = layer + "router";
    n.expert_gate_up = layer + "experts.gate_up_proj";
    n.expert_down = layer + "experts.down_proj";
    use_shared_expert_names(model, layer + "shared_expert");
    use_text_part_names(model, "llama4");
}

}  // namespace

void read_llama4(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    read_attention(fields, model);
    read_experts(fields, model, {16, 1, false});
    MoeSpec& moe = model.moe;  // its experts have intermediate_size, dense layers another
    moe.shared_intermediate = moe.intermediate;
    model.mlp.intermediate = fields.size_or({"intermediate_size_mlp"}, 16384);
    moe.routing.normalise = false;
    moe.routing.score = RouterScore::sigmoid;
    moe.routing.scale_input = true;
    moe.storage = ExpertStorage::columns;
    read_moe_layers(fields, model);
    use_llama4_names(model);
}

}  // namespace shardplan::model
