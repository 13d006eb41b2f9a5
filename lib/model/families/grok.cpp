// Grok-1: norms before and after each sublayer, capped attention scores, experts with a tanh GELU gate whose softmax
// weights are not made to sum to 1. Names are those of the Hugging Face conversions; their norms are called "scale".
#include <cmath>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

void use_grok_names(ModelSpec& model) {
    use_llama_names(model);
    TensorNames& n = model.names;
    n.q = "model.layers.{}.attn.q_proj";
    n.k = "model.layers.{}.attn.k_proj";
    n.v = "model.layers.{}.attn.v_proj";
    n.out = "model.layers.{}.attn.o_proj";
    n.router = "model.layers.{}.moe_block.gate";
    n.expert_gate = "model.layers.{}.moe_block.experts.{expert}.linear";
    n.expert_up = "model.layers.{}.moe_block.experts.{expert}.linear_v";
    n.expert_down = "model.layers.{}.moe_block.experts.{expert}.linear_1";
    n.pre_attention_norm = "model.layers.{}.pre_attn_norm.scale";
    n.post_attention_norm = "model.layers.{}.post_attn_norm.scale";
    n.pre_mlp_norm = "model.layers.{}.pre_moe_norm.scale";
    n.post_mlp_norm = "model.layers.{}.post_moe_norm.scale";
    n.final_norm = "model.norm.scale";
}

}  // namespace

void read_grok(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.max_positions = 8192;
    defaults.tied = true;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "gelu_pytorch_tanh");
    set_rope(fields, model, model.attention.head_dim);
    model.attention.scale = fields.positive_or({"attn_output_multiplier"}, model.attention.scale);
    model.attention.logit_softcap = fields.positive_or({"max_attn_value"}, 30.0);
    model.embedding_scale =
        fields.positive_or({"embedding_multiplier_scale"}, std::sqrt(static_cast<double>(model.hidden)));
    model.logit_scale = fields.positive_or({"output_multiplier_scale"}, 1.0 / std::sqrt(3.0));
    use_grok_names(model);
    read_experts(fields, model, {8, 2, false});
}

}  // namespace shardplan::model
