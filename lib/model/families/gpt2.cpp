// GPT-2: learned positions, Conv1D weights [in, out], [q | k | v] in one tensor.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gpt2(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 1024;
    defaults.intermediate_per_hidden = 4;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_new");
    set_linear_bias(model, true);
    model.mlp.gated = false;
    model.conv1d = true;
    model.position_rows = model.max_positions;
    model.attention.storage = QkvStorage::concatenated;
    if (!fields.flag_or({"scale_attn_weights"}, true)) {
        model.attention.scale = 1.0;
    }
    for (const std::string_view key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
        if (fields.flag_or({key}, false)) {
            unsupported_feature(fields, model, {key}, key);
        }
    }
    use_gpt2_names(model);
}

void use_gpt2_names(ModelSpec& model) {
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.position_embedding = "transformer.wpe";
    n.qkv = "transformer.h.{}.attn.c_attn";
    n.out = "transformer.h.{}.attn.c_proj";
    n.up = "transformer.h.{}.mlp.c_fc";
    n.down = "transformer.h.{}.mlp.c_proj";
    n.pre_attention_norm = "transformer.h.{}.ln_1";
    n.pre_mlp_norm = "transformer.h.{}.ln_2";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
    n.optional_prefix = "transformer.";
    n.ignored.emplace_back(R"((transformer\.)?h\.\d+\.attn\.(bias|masked_bias))");
}

}  // namespace shardplan::model
