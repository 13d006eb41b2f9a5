// Gemma 2: norms before and after each sublayer, soft caps, every even layer slides.
#include <cmath>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void use_gemma2_norms(ModelSpec& model) {
    TensorNames& n = model.names;
    n.post_attention_norm = "model.layers.{}.post_attention_layernorm";
    n.pre_mlp_norm = "model.layers.{}.pre_feedforward_layernorm";
    n.post_mlp_norm = "model.layers.{}.post_feedforward_layernorm";
}

void read_soft_caps(FieldReader& fields, ModelSpec& model, double attention, double logits) {
    const auto cap = [&](std::string_view key, double fallback) {
        return fields.is_null({key}) ? 0.0 : fields.positive_or({key}, fallback);
    };
    model.attention.logit_softcap = cap("attn_logit_softcapping", attention);
    model.logit_softcap = cap("final_logit_softcapping", logits);
    model.attention.scale = 1.0 / std::sqrt(fields.positive_or({"query_pre_attn_scalar"}, 256.0));
}

void read_gemma2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.vocab = 256000;
    defaults.kv_heads = 4;
    defaults.head_dim = 256;
    defaults.max_positions = 8192;
    defaults.tied = true;
    read_gemma_fields(fields, model, defaults);
    use_gemma2_norms(model);
    read_soft_caps(fields, model, 50.0, 30.0);
    set_rope(fields, model, model.attention.head_dim);
    set_windows(fields, model, read_window(fields, 4096), [](std::int64_t layer) { return layer % 2 == 0; });
}

}  // namespace shardplan::model
