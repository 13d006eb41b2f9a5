// Qwen 1.5 and 2 MoE (one shared expert behind a gate) and Qwen 3 MoE (none): qwen2 and qwen3 with experts.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

void read_qwen_experts(FieldReader& fields, ModelSpec& model, const MoeDefaults& defaults, std::int64_t intermediate) {
    read_experts(fields, model, defaults);
    model.moe.intermediate = fields.size_or({"moe_intermediate_size"}, intermediate);
    read_sparse_layers(fields, model);
    use_mlp_expert_names(model);
}

}  // namespace

void read_qwen2_moe(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 16;
    defaults.max_positions = 32768;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_qkv_bias(model, fields.flag_or({"qkv_bias"}, true));
    set_rope(fields, model, model.attention.head_dim);
    read_qwen_windows(fields, model);
    use_llama_names(model);
    read_qwen_experts(fields, model, {60, 4, false}, 1408);
    model.moe.shared_intermediate = fields.size_or({"shared_expert_intermediate_size"}, 5632);
    model.moe.shared_gate = true;
    use_shared_expert_names(model, "model.layers.{}.mlp.shared_expert");
    model.names.shared_router = "model.layers.{}.mlp.shared_expert_gate";
}

void read_qwen3_moe(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 4;
    defaults.max_positions = 32768;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    set_rope(fields, model, model.attention.head_dim);
    read_qwen_windows(fields, model);
    use_llama_names(model);
    set_head_norms(model);
    read_qwen_experts(fields, model, {128, 8, false}, 768);
}

}  // namespace shardplan::model
