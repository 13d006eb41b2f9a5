// OPT: learned positions with an offset of 2; 350m norms after the residual and projects the embedding.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

/// llm-analysis says nothing of what makes the 350m differ from the other sizes; its own sizes tell it from them.
bool names_350m(const FieldReader& fields, const ModelSpec& model) {
    return has_llm_analysis_names(fields.object()) && model.hidden == 1024 && model.layers.size() == 24;
}

}  // namespace

void read_opt(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    const bool affine = fields.flag_or({"layer_norm_elementwise_affine"}, true);
    model.norm = {NormKind::layer, 1e-5, 0.0, affine, affine};
    read_activation(fields, model, "relu");
    model.mlp.gated = false;
    set_linear_bias(model, fields.flag_or({"enable_bias"}, true));
    model.position_offset = 2;
    model.position_rows = model.max_positions + model.position_offset;
    const bool is_350m = names_350m(fields, model);
    model.norm_after_residual = !fields.flag_or({"do_layer_norm_before"}, !is_350m);
    model.final_norm = !model.norm_after_residual && !fields.flag_or({"_remove_final_layer_norm"}, false);
    model.embedding_width = fields.size_or({"word_embed_proj_dim"}, is_350m ? 512 : model.hidden);
    TensorNames& n = model.names;
    n.embedding = "model.decoder.embed_tokens";
    n.position_embedding = "model.decoder.embed_positions";
    n.q = "model.decoder.layers.{}.self_attn.q_proj";
    n.k = "model.decoder.layers.{}.self_attn.k_proj";
    n.v = "model.decoder.layers.{}.self_attn.v_proj";
    n.out = "model.decoder.layers.{}.self_attn.out_proj";
    n.up = "model.decoder.layers.{}.fc1";
    n.down = "model.decoder.layers.{}.fc2";
    n.pre_attention_norm = "model.decoder.layers.{}.self_attn_layer_norm";
    n.pre_mlp_norm = "model.decoder.layers.{}.final_layer_norm";
    n.lm_head = "lm_head";
    n.optional_prefix = "model.";
    if (model.final_norm) {
        n.final_norm = "model.decoder.final_layer_norm";
    }
    if (model.embedding_width != model.hidden) {
        n.project_in = "model.decoder.project_in";
        n.project_out = "model.decoder.project_out";
    }
}

}  // namespace shardplan::model
