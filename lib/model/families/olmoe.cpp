// OLMoE: q and k normed over all heads (and then clipped), experts in every layer.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_olmoe(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 4096;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    model.attention.qkv_clip = fields.positive_or({"clip_qkv"}, 0.0);
    set_rope(fields, model, model.attention.head_dim);
    use_llama_names(model);
    set_head_norms(model);
    model.attention.qk_norm = QkNorm::full;
    read_experts(fields, model, {64, 8, false});
    use_mlp_expert_names(model);
}

}  // namespace shardplan::model
