// OLMo: LayerNorms without weights, clipped q, k and v.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_olmo(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    model.norm = {NormKind::layer, 1e-5, 0.0, false, false};
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    model.attention.qkv_clip = fields.positive_or({"clip_qkv"}, 0.0);
    set_rope(fields, model, model.attention.head_dim);
    use_llama_names(model);
}

}  // namespace shardplan::model
