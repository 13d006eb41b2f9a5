// Qwen 1: one tensor for q, k, v with a bias; the MLP is half as wide as intermediate_size says.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_qwen(FieldReader& fields, ModelSpec& model) {
    read_sizes(fields, model, {});
    if (fields.ok() && model.mlp.intermediate % 2 != 0) {
        fields.report("SP2003", {"intermediate_size"}, "intermediate_size of qwen counts gate and up and must be even");
    }
    model.mlp.intermediate = (model.mlp.intermediate + 1) / 2;
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    set_qkv_bias(model, true);
    if (!fields.flag_or({"no_bias"}, true)) {
        unsupported_feature(fields, model, {"no_bias"}, "no_bias = false");
    }
    set_rope(fields, model, partial_rotary_dim(fields, model, 1.0));
    if (fields.flag_or({"use_dynamic_ntk"}, false) || fields.flag_or({"use_logn_attn"}, false)) {
        model.notes.emplace_back(
            "use_dynamic_ntk and use_logn_attn change positions beyond seq_length only: not applied");
    }
    model.attention.storage = QkvStorage::concatenated;
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.qkv = "transformer.h.{}.attn.c_attn";
    n.out = "transformer.h.{}.attn.c_proj";
    n.gate = "transformer.h.{}.mlp.w2";
    n.up = "transformer.h.{}.mlp.w1";
    n.down = "transformer.h.{}.mlp.c_proj";
    n.pre_attention_norm = "transformer.h.{}.ln_1";
    n.pre_mlp_norm = "transformer.h.{}.ln_2";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
}

}  // namespace shardplan::model
