// Gemma 3 (text): as Gemma 2 with head norms; five of six layers slide and have a rope of their own.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gemma3(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.vocab = 262208;
    defaults.kv_heads = 4;
    defaults.head_dim = 256;
    defaults.max_positions = 131072;
    defaults.tied = true;
    read_gemma_fields(fields, model, defaults);
    use_gemma2_norms(model);
    read_soft_caps(fields, model, 0.0, 0.0);
    set_head_norms(model);
    set_rope(fields, model, model.attention.head_dim, 1e6);
    RopeDefaults local;
    local.scaled = false;
    local.layer_type = "sliding_attention";
    model.attention.local_rope = read_rope(fields, model.attention.head_dim, local);
    const std::int64_t pattern = fields.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
    set_windows(fields, model, read_window(fields, 4096),
                [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    for (LayerSpec& layer : model.layers) {
        layer.local_rope = layer.sliding_window > 0;
    }
}

}  // namespace shardplan::model
