// Qwen 2 and 2.5 and MiMo: biases in q, k, v; the layers from max_window_layers on may slide.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_qwen2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 32;
    defaults.max_positions = 32768;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_qkv_bias(model, true);
    set_rope(fields, model, model.attention.head_dim);
    read_qwen_windows(fields, model);
    use_llama_names(model);
    if (fields.find({"num_nextn_predict_layers"}) != nullptr) {
        model.notes.emplace_back("the layers that predict further tokens (num_nextn_predict_layers) are left out");
    }
}

void read_qwen_windows(FieldReader& fields, ModelSpec& model) {
    const bool used = fields.flag_or({"use_sliding_window"}, false);
    const double first = fields.number_or({"max_window_layers"}, 28.0, 0.0, 1e9);
    const std::int64_t window = read_window(fields, 4096);
    set_windows(fields, model, used ? window : 0,
                [first](std::int64_t layer) { return static_cast<double>(layer) >= first; });
}

}  // namespace shardplan::model
