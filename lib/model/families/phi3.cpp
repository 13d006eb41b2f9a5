// Phi 3, 3.5 and 4 mini: [q | k | v] and [gate | up] in one tensor each.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_phi3(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 4096;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    model.attention.storage = QkvStorage::concatenated;
    model.mlp.fused_gate_up = true;
    set_rope(fields, model, partial_rotary_dim(fields, model, 1.0));
    set_windows(fields, model, read_window(fields, 0), [](std::int64_t) { return true; });
    use_llama_names(model);
    model.names.qkv = "model.layers.{}.self_attn.qkv_proj";
    model.names.gate_up = "model.layers.{}.mlp.gate_up_proj";
    if (model.model_type == "phi3_v") {
        model.notes.emplace_back("only the text decoder is planned; the image parts are left out");
    }
}

}  // namespace shardplan::model
