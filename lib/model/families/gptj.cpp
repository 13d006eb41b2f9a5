// GPT-J: interleaved partial rope, attention and MLP in parallel from one norm, a head with a bias.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gptj(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.intermediate_per_hidden = 4;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
    read_activation(fields, model, "gelu_new");
    set_mlp_bias(model, true);
    model.mlp.gated = false;
    model.lm_head_bias = true;
    model.layout = BlockLayout::parallel;
    model.shared_norm = true;
    const std::int64_t rotary = fields.is_null({"rotary_dim"}) ? model.hidden : fields.size_or({"rotary_dim"}, 64);
    set_rope(fields, model, rotary);
    model.attention.rope.interleaved = true;
    TensorNames& n = model.names;
    n.embedding = "transformer.wte";
    n.q = "transformer.h.{}.attn.q_proj";
    n.k = "transformer.h.{}.attn.k_proj";
    n.v = "transformer.h.{}.attn.v_proj";
    n.out = "transformer.h.{}.attn.out_proj";
    n.up = "transformer.h.{}.mlp.fc_in";
    n.down = "transformer.h.{}.mlp.fc_out";
    n.pre_attention_norm = "transformer.h.{}.ln_1";
    n.final_norm = "transformer.ln_f";
    n.lm_head = "lm_head";
    n.ignored.emplace_back(R"(transformer\.h\.\d+\.attn\.(bias|masked_bias))");
}

}  // namespace shardplan::model
