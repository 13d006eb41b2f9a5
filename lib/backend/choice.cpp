#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/provider.h"

namespace shardplan::backend {
namespace {

/// The linear biases a model has, by the names of the specification.
std::vector<std::string> linear_biases(const model::ModelSpec& model) {
    const std::array<std::pair<bool, const char*>, 9> all = {{
        {model.attention.q_bias, "q"},
        {model.attention.k_bias, "k"},
        {model.attention.v_bias, "v"},
        {model.attention.latent.down_bias, "latent projections"},
        {model.attention.out_bias, "attention output"},
        {model.mlp.up_bias, "mlp up"},
        {model.mlp.down_bias, "mlp down"},
        {model.moe.experts > 0 && model.moe.bias, "experts"},
        {model.lm_head_bias, "lm_head"},
    }};
    std::vector<std::string> result;
    for (const auto& [present, name] : all) {
        if (present) {
            result.emplace_back(name);
        }
    }
    return result;
}

void refuse_model(const model::ModelSpec& model, std::vector<std::string>& reasons) {
    if (model.norm.kind != model::NormKind::rms) {
        reasons.emplace_back("its layers compute RMSNorm only, the model has LayerNorm");
    }
    if (const std::vector<std::string> biases = linear_biases(model); !biases.empty()) {
        reasons.push_back(fmt::format("its linears have no bias, the model has biases on {}", fmt::join(biases, ", ")));
    }
    if (model.norm.weight_offset != 0.0) {
        reasons.push_back(
            fmt::format("its norms multiply by the stored weight, the model's weights mean {} + weight "
                        "(zero-centred gamma)",
                        model.norm.weight_offset));
    }
}

void refuse_sizes(const model::ModelSpec& model, std::int64_t devices, std::vector<std::string>& reasons) {
    const std::array<std::pair<std::int64_t, const char*>, 2> dimensions = {{
        {model.attention.heads * model.attention.value_dim(), "heads * head_dim"},
        {model.mlp.intermediate, "intermediate size"},
    }};
    for (const auto& [size, name] : dimensions) {
        if (size % devices != 0) {
            reasons.push_back(fmt::format(
                "its linears are cut evenly over {} devices, but the {} {} is no multiple of it", devices, name, size));
        }
    }
}

ProviderKind kind_of(ProviderChoice choice) {
    switch (choice) {
        case ProviderChoice::local: return ProviderKind::local;
        case ProviderChoice::fused: return ProviderKind::fused;
        case ProviderChoice::inference: return ProviderKind::inference;
        case ProviderChoice::automatic: break;
    }
    throw std::invalid_argument("the automatic choice is no provider");
}

std::string_view why_taken(ProviderKind kind) {
    switch (kind) {
        case ProviderKind::local: return "it runs every model";
        case ProviderKind::fused: return "norms are computed inside of the linears that follow them";
        case ProviderKind::inference: return "the step is a decode step";
    }
    return "";
}

/// Megatron's local specification makes the down projections of latent attention column parallel (semantics 2.3).
void remark_on_latent(const model::ModelSpec& model, std::int64_t devices, std::vector<std::string>& remarks) {
    const model::LatentSpec& latent = model.attention.latent;
    if (!model.attention.is_latent()) {
        return;
    }
    const std::array<std::pair<std::int64_t, const char*>, 2> widths = {{
        {latent.q_rank, "q_lora_rank"},
        {latent.kv_rank + latent.rope_dim, "kv_lora_rank + qk_rope_head_dim"},
    }};
    for (const auto& [size, name] : widths) {
        if (size % devices != 0) {
            remarks.push_back(fmt::format(
                "Megatron's local specification cuts the down projections of latent attention over the heads' {} "
                "devices, and {} {} is no multiple of that; this planner keeps them whole",
                devices, name, size));
        }
    }
}

std::optional<ProviderDecision> take_chosen(ProviderKind kind, ProviderCompat compat, const model::ModelSpec& model,
                                            const ProviderConditions& conditions, const std::string& pointer,
                                            diag::Diagnostics& diagnostics) {
    const std::vector<std::string> reasons = refusals(kind, compat, model, conditions);
    if (reasons.empty()) {
        return ProviderDecision{kind, {fmt::format("{}: as the job says", to_string(kind))}};
    }
    std::vector<std::string> usable = {"\"auto\""};
    if (conditions.int8_weights) {
        usable = {kind == ProviderKind::inference ? "\"auto\" without weight_dtype" : "no weight_dtype"};
    }
    for (const ProviderKind other : {ProviderKind::inference, ProviderKind::fused, ProviderKind::local}) {
        if (other != kind && refusals(other, compat, model, conditions).empty()) {
            usable.push_back(fmt::format("\"{}\"", to_string(other)));
        }
    }
    for (const std::string& reason : reasons) {
        diagnostics.report("SP5001", fmt::format("provider '{}' cannot be used: {}", to_string(kind), reason), pointer,
                           fmt::format("use {}", fmt::join(usable, " or ")));
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> refusals(ProviderKind kind, ProviderCompat compat, const model::ModelSpec& model,
                                  const ProviderConditions& conditions) {
    std::vector<std::string> reasons;
    if (kind != ProviderKind::inference) {
        if (conditions.int8_weights) {
            reasons.emplace_back("it multiplies weights of the workload's dtype only, the job wants them in int8");
        }
        return reasons;
    }
    refuse_model(model, reasons);
    if (model.moe.experts > 0 && !make_provider(kind, compat)->grouped_mlp_modules(true, false)) {
        reasons.push_back(fmt::format(
            "with options.compat seed its version is core_v0.16.0, which has no experts (current has), and the "
            "model has {}",
            model.moe.experts));
    }
    const std::int64_t devices = conditions.tensor_parallel;
    if (devices <= 1) {
        return reasons;
    }
    if (!conditions.sequence_parallel) {
        reasons.push_back(
            fmt::format("with heads cut over {} devices its residual stream is cut over the same devices "
                        "by tokens, which the hidden states of this job are not",
                        devices));
    } else if (!conditions.tokens_divisible) {
        reasons.push_back(fmt::format(
            "its residual stream is cut by tokens over {} devices, and the tokens of the step are no multiple of that",
            devices));
    }
    refuse_sizes(model, devices, reasons);
    return reasons;
}

std::vector<std::string> remarks(ProviderKind kind, ProviderCompat compat, const model::ModelSpec& model,
                                 const ProviderConditions& conditions) {
    std::vector<std::string> result;
    if (kind == ProviderKind::local && conditions.context_parallel > 1) {
        result.push_back(
            fmt::format("Megatron's DotProductAttention refuses context parallelism (here the keys are cut over {} "
                        "devices); this planner's local attention can do it",
                        conditions.context_parallel));
    }
    if (model.moe.experts > 0) {
        const auto experts = expert_modules(*make_provider(kind, compat, conditions.experts));
        if (experts && !experts->warning.empty()) {
            result.push_back(fmt::format("{} ({})", experts->experts, experts->warning));
        }
    }
    if (kind == ProviderKind::local && model.attention.alibi) {
        result.emplace_back(
            "Megatron's DotProductAttention takes no attention bias (here ALiBi); this planner's local attention does");
    }
    if (kind == ProviderKind::inference && conditions.expert_tensor_parallel > 1) {
        result.push_back(fmt::format(
            "Megatron's inference layers refuse experts that are cut themselves (here over {} devices); this "
            "planner's can do it",
            conditions.expert_tensor_parallel));
    }
    if (kind == ProviderKind::inference && model.attention.is_latent() && model.moe.experts > 0) {
        result.emplace_back(
            "Megatron's inference specification of latent attention leaves out the norm before experts; this planner "
            "keeps it");
    }
    if (kind == ProviderKind::local) {
        remark_on_latent(model, conditions.tensor_parallel, result);
    }
    const bool rms = model.norm.kind == model::NormKind::rms;
    const std::string_view norm = make_provider(kind, compat)->layer_norm(rms, false);
    if (norm != "WrappedTorchNorm") {
        return result;
    }
    if (conditions.sequence_parallel && conditions.tensor_parallel > 1) {
        result.push_back(
            fmt::format("Megatron refuses {} with sequence parallelism (here over {} devices); this "
                        "planner's local norm can do it",
                        norm, conditions.tensor_parallel));
    }
    if (model.norm.weight_offset != 0.0) {
        result.push_back(
            fmt::format("Megatron refuses {} with zero-centred gamma (here {} + weight); this planner's "
                        "local norm can do it",
                        norm, model.norm.weight_offset));
    }
    return result;
}

std::optional<ProviderDecision> choose_provider(ProviderChoice choice, ProviderCompat compat,
                                                const model::ModelSpec& model, const model::Workload& workload,
                                                const ProviderConditions& conditions, const std::string& pointer,
                                                diag::Diagnostics& diagnostics) {
    if (choice != ProviderChoice::automatic) {
        return take_chosen(kind_of(choice), compat, model, conditions, pointer, diagnostics);
    }
    ProviderDecision decision;
    bool found = false;
    const bool decode = workload.mode == model::Mode::decode || conditions.int8_weights;
    if (!decode) {
        decision.reasons.emplace_back("inference: not taken, the step is not a decode step");
    }
    const std::vector<ProviderKind> candidates =
        decode ? std::vector{ProviderKind::inference, ProviderKind::fused, ProviderKind::local}
               : std::vector{ProviderKind::fused, ProviderKind::local};
    for (const ProviderKind kind : candidates) {
        const std::vector<std::string> refused = refusals(kind, compat, model, conditions);
        if (refused.empty()) {
            found = true;
            decision.kind = kind;
            const std::string_view why = conditions.int8_weights ? "only it has int8 weights" : why_taken(kind);
            decision.reasons.insert(decision.reasons.begin(), fmt::format("{}: taken, {}", to_string(kind), why));
            break;
        }
        for (const std::string& reason : refused) {
            decision.reasons.push_back(fmt::format("{}: refused, {}", to_string(kind), reason));
        }
    }
    if (!found) {
        diagnostics.report(
            "SP5001", fmt::format("no provider can be used with int8 weights: {}", fmt::join(decision.reasons, "; ")),
            pointer, "use no weight_dtype, or change what keeps inference from being used");
        return std::nullopt;
    }
    diagnostics.report("SP5002", fmt::format("automatic provider: {}", fmt::join(decision.reasons, "; ")), pointer);
    return decision;
}

}  // namespace shardplan::backend
