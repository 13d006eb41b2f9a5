// GPT-BigCode (StarCoder 1): gpt2 with plain linear weights and, usually, one key/value head.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gpt_bigcode(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 1024;
    defaults.intermediate_per_hidden = 4;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_pytorch_tanh");
    set_linear_bias(model, true);
    model.mlp.gated = false;
    model.position_rows = model.max_positions;
    AttentionSpec& a = model.attention;
    const bool one = fields.flag_or({"multi_query"}, true);
    a.kv_heads = one ? 1 : a.heads;
    a.storage = one ? QkvStorage::concatenated : QkvStorage::grouped;
    if (!fields.flag_or({"scale_attn_weights"}, true)) {
        a.scale = 1.0;
    }
    use_gpt2_names(model);
}

}  // namespace shardplan::model
