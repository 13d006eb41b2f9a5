// Command R and R7B: parallel from one LayerNorm without bias, interleaved rope, scaled logits.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_cohere(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 8192;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    model.logit_scale = fields.positive_or({"logit_scale"}, 0.0625);
    model.layout = BlockLayout::parallel;
    model.shared_norm = true;
    set_rope(fields, model, model.attention.head_dim);
    model.attention.rope.interleaved = true;
    use_llama_names(model);
    if (fields.flag_or({"use_qk_norm"}, false)) {
        unsupported_feature(fields, model, {"use_qk_norm"}, "use_qk_norm (a norm of its own for each head)");
    }
}

void read_cohere2(FieldReader& fields, ModelSpec& model) {
    read_cohere(fields, model);
    const std::int64_t pattern = fields.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
    set_windows(fields, model, read_window(fields, 4096),
                [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    for (LayerSpec& layer : model.layers) {
        layer.rope = layer.sliding_window > 0;
    }
}

}  // namespace shardplan::model
