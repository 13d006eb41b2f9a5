// DeepSeek V2, V3 and what follows them (Moonlight, Kimi K2): latent attention, dense first layers, then experts with
// shared ones. Where transformers and the authors' modeling_deepseek.py differ, the latter counts: V2 scales the scores
// by mscale_all_dim too, and its weights are either normalised or scaled. Groups that are not chosen are out of the
// choice (-inf, as the authors' inference code), also where a correction makes scores negative.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {
namespace {

constexpr std::int64_t largest_head = 1 << 16;
constexpr std::int64_t largest_rank = 1 << 24;

struct DeepseekDefaults {
    MoeDefaults experts;
    std::int64_t expert_intermediate = 0;
    std::int64_t shared = 0;
    std::int64_t first_dense = 0;
    std::int64_t groups = 1;
    std::int64_t group_top_k = 1;
    double scale = 1.0;
    std::string_view scoring;
    std::string_view method;
    std::int64_t max_positions = 0;
};

bool has_latent(const FieldReader& fields) {
    const ConfigValue* flag = fields.find({"use_mla"});
    const bool refused = flag != nullptr && flag->boolean() != nullptr && !*flag->boolean();
    return !refused && !fields.is_null({"kv_lora_rank"});
}

LatentSpec read_latent(FieldReader& fields) {
    LatentSpec latent;
    latent.kv_rank = fields.optional_size({"kv_lora_rank"}, largest_rank).value_or(512);
    const bool direct = fields.is_null({"q_lora_rank"});
    latent.q_rank = fields.optional_size({"q_lora_rank"}, largest_rank).value_or(direct ? 0 : 1536);
    latent.nope_dim = fields.optional_size({"qk_nope_head_dim"}, largest_head).value_or(128);
    latent.rope_dim = fields.optional_size({"qk_rope_head_dim"}, largest_head).value_or(64);
    latent.value_dim = fields.optional_size({"v_head_dim"}, largest_head).value_or(128);
    latent.norm.eps = 1e-6;  // of the class of the norm, whatever rms_norm_eps says
    return latent;
}

/// Yarn's correction of the scores: the square of 0.1 * mscale_all_dim * ln(factor) + 1.
double score_correction(FieldReader& fields) {
    const ConfigValue* scaling = fields.find({"rope_parameters", "rope_scaling"});
    if (scaling == nullptr || !scaling->is_object()) {
        return 1.0;
    }
    FieldReader inner(*scaling, fields.diagnostics());
    const double mscale = inner.number_or({"mscale_all_dim"}, 0.0, 0.0, 1e6);
    const double factor = inner.positive_or({"factor"}, 1.0);
    if (!inner.ok()) {
        fields.fail();
    }
    const double magnitude = factor > 1.0 ? 0.1 * mscale * std::log(factor) + 1.0 : 1.0;
    return magnitude * magnitude;
}

void use_latent_names(ModelSpec& model) {
    TensorNames& n = model.names;
    const std::string attention = "model.layers.{}.self_attn.";
    const bool direct = model.attention.latent.q_rank == 0;
    n.q = attention + (direct ? "q_proj" : "q_b_proj");
    n.k.clear();
    n.v.clear();
    n.q_down = direct ? "" : attention + "q_a_proj";
    n.q_down_norm = direct ? "" : attention + "q_a_layernorm";
    n.kv_down = attention + "kv_a_proj_with_mqa";
    n.kv_down_norm = attention + "kv_a_layernorm";
    n.kv_up = attention + "kv_b_proj";
}

void read_attention(FieldReader& fields, ModelSpec& model, bool latent, bool bias) {
    AttentionSpec& a = model.attention;
    if (!latent) {
        set_attention_bias(model, bias);
        set_rope(fields, model, a.head_dim);
        return;
    }
    if (fields.ok() && a.kv_heads != a.heads) {
        fields.report("SP2003", {"num_key_value_heads"},
                      fmt::format("latent attention makes a key for each of the {} heads, num_key_value_heads is {}",
                                  a.heads, a.kv_heads),
                      "set num_key_value_heads to num_attention_heads");
    }
    a.latent = read_latent(fields);
    a.latent.down_bias = bias;
    a.out_bias = bias;
    a.head_dim = a.latent.nope_dim + a.latent.rope_dim;
    a.scale = score_correction(fields) / std::sqrt(static_cast<double>(a.head_dim));
    set_rope(fields, model, a.latent.rope_dim);
    a.rope.interleaved = fields.flag_or({"rope_interleave"}, true);
    use_latent_names(model);
}

void read_routing(FieldReader& fields, ModelSpec& model, const DeepseekDefaults& defaults) {
    RoutingSpec& routing = model.moe.routing;
    const std::string scoring = fields.word_or({"scoring_func"}, defaults.scoring);
    if (scoring != "softmax" && scoring != "sigmoid") {
        fields.report("SP1008", {"scoring_func"}, fmt::format("scoring_func \"{}\" is not known", scoring),
                      "known: softmax, sigmoid");
    }
    routing.score = scoring == "sigmoid" ? RouterScore::sigmoid : RouterScore::softmax;
    const std::string method = fields.word_or({"topk_method"}, defaults.method);
    if (method != "greedy" && method != "group_limited_greedy" && method != "noaux_tc") {
        fields.report("SP1008", {"topk_method"}, fmt::format("topk_method \"{}\" is not known", method),
                      "known: greedy, group_limited_greedy, noaux_tc");
    }
    routing.correction_bias = method == "noaux_tc";
    routing.group_score = routing.correction_bias ? GroupScore::top_two_sum : GroupScore::maximum;
    if (method != "greedy") {
        read_expert_groups(fields, model, defaults.groups, defaults.group_top_k);
    }
    routing.scale = fields.positive_or({"routed_scaling_factor"}, defaults.scale);
    routing.normalise = routing.normalise && routing.top_k > 1;
    if (routing.normalise && !routing.correction_bias) {
        routing.scale = 1.0;
    }
}

/// Megatron's list: 1 for each layer with experts, 0 for each without.
void read_listed_layers(FieldReader& fields, const ConfigValue::Array& list, ModelSpec& model) {
    if (list.size() != model.layers.size()) {
        fields.report(
            "SP2003", {"moe_layer_freq"},
            fmt::format("moe_layer_freq has {} values, the model has {} layers", list.size(), model.layers.size()),
            fmt::format("give {} values of 0 or 1, or one number N: experts in every N-th layer", model.layers.size()));
        return;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::int64_t* flag = list[i].integer();
        if (flag == nullptr || (*flag != 0 && *flag != 1)) {
            fields.report("SP1006", {"moe_layer_freq"},
                          fmt::format("moe_layer_freq holds {} for layer {}, it must be 0 or 1", describe(list[i]), i),
                          "1: the layer has experts, 0: it has none");
            return;
        }
        model.layers[i].moe = *flag == 1;
    }
}

/// Experts in the layers from first_k_dense_replace on whose number is a multiple of moe_layer_freq.
void read_expert_layers(FieldReader& fields, const DeepseekDefaults& defaults, ModelSpec& model) {
    const ConfigValue* freq = fields.find({"moe_layer_freq"});
    if (freq != nullptr && freq->array() != nullptr) {
        return read_listed_layers(fields, *freq->array(), model);
    }
    const auto dense = fields.number_or({"first_k_dense_replace"}, static_cast<double>(defaults.first_dense), 0.0, 1e9);
    const std::int64_t every = fields.size_or({"moe_layer_freq"}, 1);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        model.layers[i].moe = static_cast<double>(i) >= dense && static_cast<std::int64_t>(i) % every == 0;
    }
}

void read_moe(FieldReader& fields, ModelSpec& model, const DeepseekDefaults& defaults) {
    if (fields.is_null({"n_routed_experts"})) {
        return;
    }
    if (defaults.experts.top_k == 0 && fields.find({"num_experts_per_tok"}) == nullptr) {
        fields.missing({"num_experts_per_tok"});
    }
    read_experts(fields, model, defaults.experts);
    read_expert_layers(fields, defaults, model);
    model.moe.intermediate = fields.size_or({"moe_intermediate_size"}, defaults.expert_intermediate);
    const std::int64_t shared =
        fields.is_null({"n_shared_experts"}) ? 0 : fields.size_or({"n_shared_experts"}, defaults.shared);
    model.moe.shared_intermediate = fields.ok() ? base::checked_mul(shared, model.moe.intermediate) : 0;
    read_routing(fields, model, defaults);
    use_mlp_expert_names(model);
    use_shared_expert_names(model, "model.layers.{}.mlp.shared_experts");
    model.names.router_correction = "model.layers.{}.mlp.gate.e_score_correction_bias";
    if (std::none_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& layer) { return layer.moe; })) {
        model.moe = {};
    }
}

/// The layers that predict further tokens follow the last one in the checkpoint.
void note_further_tokens(FieldReader& fields, ModelSpec& model) {
    const double count = fields.number_or({"num_nextn_predict_layers"}, 0.0, 0.0, 1e6);
    if (count > 0.0) {
        model.notes.push_back(fmt::format(
            "num_nextn_predict_layers {}: layers that predict tokens ahead are no part of the decoder and not planned",
            count));
    }
    model.names.ignored.push_back(fmt::format(R"(model\.layers\.{}\..*)", model.layers.size()));
}

void read_deepseek(FieldReader& fields, ModelSpec& model, const DeepseekDefaults& defaults) {
    const bool latent = has_latent(fields);
    SizeDefaults sizes;
    sizes.max_positions = defaults.max_positions;
    if (latent) {
        sizes.head_dim = 1;  // what the config says of heads follows below
    }
    read_sizes(fields, model, sizes);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    use_llama_names(model);
    read_attention(fields, model, latent, fields.flag_or({"attention_bias"}, false));
    read_moe(fields, model, defaults);
    note_further_tokens(fields, model);
}

}  // namespace

void read_deepseek_v2(FieldReader& fields, ModelSpec& model) {
    DeepseekDefaults defaults;
    defaults.experts = {64, 0, false};
    defaults.expert_intermediate = 1407;
    defaults.shared = 2;
    defaults.scoring = "softmax";
    defaults.method = "greedy";
    defaults.max_positions = 2048;
    read_deepseek(fields, model, defaults);
}

void read_deepseek_v3(FieldReader& fields, ModelSpec& model) {
    DeepseekDefaults defaults;
    defaults.experts = {256, 8, true};
    defaults.expert_intermediate = 2048;
    defaults.shared = 1;
    defaults.first_dense = 3;
    defaults.groups = 8;
    defaults.group_top_k = 4;
    defaults.scale = 2.5;
    defaults.scoring = "sigmoid";
    defaults.method = "noaux_tc";
    defaults.max_positions = 4096;
    read_deepseek(fields, model, defaults);
}

}  // namespace shardplan::model
