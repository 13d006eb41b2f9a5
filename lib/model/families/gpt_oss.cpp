// GPT-OSS: biases everywhere, a sink for each head, every other layer slides; experts stacked with the columns of gate
// and up in turn, a clamped activation of their own, weights by a softmax over the chosen logits.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_gpt_oss(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.head_dim = 64;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, true));
    set_rope(fields, model, model.attention.head_dim, 150000.0);
    set_windows(fields, model, read_window(fields, 128), [](std::int64_t layer) { return layer % 2 == 0; });
    use_llama_names(model);
    model.attention.sinks = true;
    model.names.sinks = "model.layers.{}.self_attn.sinks";
    read_experts(fields, model, {128, 4, false});
    MoeSpec& moe = model.moe;
    moe.routing.normalise = false;
    moe.routing.score = RouterScore::top_softmax;
    moe.storage = ExpertStorage::interleaved;
    moe.bias = true;
    moe.router_bias = true;
    moe.swiglu_limit = fields.positive_or({"swiglu_limit"}, 7.0);
    model.names.router = "model.layers.{}.mlp.router";
    model.names.expert_gate_up = "model.layers.{}.mlp.experts.gate_up_proj";
    model.names.expert_down = "model.layers.{}.mlp.experts.down_proj";
}

}  // namespace shardplan::model
