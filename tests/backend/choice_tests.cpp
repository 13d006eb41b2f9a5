// Which provider can run which model under which conditions, and what the automatic choice takes.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "backend/provider.h"

using namespace shardplan;
using namespace shardplan::backend;

namespace {

constexpr ProviderCompat compats[] = {ProviderCompat::seed, ProviderCompat::current};

model::ModelSpec llama_like() {
    model::ModelSpec model;
    model.hidden = 64;
    model.norm.kind = model::NormKind::rms;
    model.attention.heads = 8;
    model.attention.kv_heads = 2;
    model.attention.head_dim = 8;
    model.mlp.intermediate = 128;
    return model;
}

constexpr ProviderConditions one_device{};
constexpr ProviderConditions by_tokens{4, true, true};

bool mentions(const std::vector<std::string>& texts, const std::string& part) {
    for (const std::string& text : texts) {
        if (text.find(part) != std::string::npos) {
            return true;
        }
    }
    return false;
}

std::optional<ProviderDecision> choose(ProviderChoice choice, const model::ModelSpec& model, model::Mode mode,
                                       const ProviderConditions& conditions, diag::Diagnostics& diagnostics) {
    model::Workload workload;
    workload.mode = mode;
    return choose_provider(choice, ProviderCompat::seed, model, workload, conditions, "/backend/provider", diagnostics);
}

}  // namespace

TEST_CASE("what the inference provider refuses") {
    struct Row {
        std::function<void(model::ModelSpec&, ProviderConditions&)> change;
        std::vector<std::string> texts;  ///< one per reason
    };
    const Row rows[] = {
        {[](auto&, auto&) {}, {}},
        {[](auto&, auto& c) { c = one_device; }, {}},
        {[](auto& m, auto&) { m.norm.kind = model::NormKind::layer; }, {"the model has LayerNorm"}},
        {[](auto& m, auto&) { m.norm.weight_offset = 1.0; }, {"1 + weight"}},
        {[](auto& m, auto&) { m.attention.q_bias = true; }, {"biases on q"}},
        {[](auto& m, auto&) { m.attention.k_bias = m.attention.v_bias = true; }, {"biases on k, v"}},
        {[](auto& m, auto&) { m.attention.out_bias = true; }, {"biases on attention output"}},
        {[](auto& m, auto&) { m.mlp.up_bias = m.mlp.down_bias = true; }, {"biases on mlp up, mlp down"}},
        {[](auto& m, auto&) { m.lm_head_bias = true; }, {"biases on lm_head"}},
        {[](auto&, auto& c) { c.sequence_parallel = false; }, {"over 4 devices"}},
        {[](auto&, auto& c) { c.tokens_divisible = false; }, {"the tokens of the step are no multiple"}},
        {[](auto& m, auto&) { m.mlp.intermediate = 130; }, {"the intermediate size 130 is no multiple"}},
        {[](auto& m, auto&) { m.attention.heads = 5, m.attention.head_dim = 10; }, {"the heads * head_dim 50"}},
        {[](auto& m, auto& c) { m.mlp.intermediate = 130, c = one_device; }, {}},
        {[](auto&, auto& c) {
             c = {1, false, false};
         },
         {}},
        {[](auto& m, auto& c) {
             m.norm.kind = model::NormKind::layer;
             m.attention.q_bias = true;
             c.sequence_parallel = false;
         },
         {"LayerNorm", "biases on q", "over 4 devices"}},
    };
    for (const Row& row : rows) {
        model::ModelSpec model = llama_like();
        ProviderConditions conditions = by_tokens;
        row.change(model, conditions);
        for (const ProviderCompat compat : compats) {
            const auto reasons = refusals(ProviderKind::inference, compat, model, conditions);
            REQUIRE(reasons.size() == row.texts.size());
            for (std::size_t i = 0; i < reasons.size(); ++i) {
                CAPTURE(reasons[i]);
                CHECK(reasons[i].find(row.texts[i]) != std::string::npos);
            }
            CHECK(refusals(ProviderKind::local, compat, model, conditions).empty());
            CHECK(refusals(ProviderKind::fused, compat, model, conditions).empty());
        }
    }
}

TEST_CASE("remarks: what Megatron refuses and our local kernels can do") {
    model::ModelSpec model = llama_like();
    for (const ProviderCompat compat : compats) {
        CHECK(mentions(remarks(ProviderKind::local, compat, model, by_tokens), "sequence parallelism (here over 4"));
        CHECK(remarks(ProviderKind::local, compat, model, one_device).empty());
        CHECK(remarks(ProviderKind::local, compat, model, {1, true, true}).empty());
        CHECK(remarks(ProviderKind::local, compat, model, {4, false, true}).empty());
        CHECK(remarks(ProviderKind::fused, compat, model, by_tokens).empty());
        CHECK(remarks(ProviderKind::inference, compat, model, by_tokens).empty());
        model::ModelSpec centred = model;
        centred.norm.weight_offset = 1.0;
        CHECK(remarks(ProviderKind::local, compat, centred, by_tokens).size() == 2);
        CHECK(mentions(remarks(ProviderKind::local, compat, centred, one_device), "zero-centred gamma"));
        model::ModelSpec layer = model;
        layer.norm.kind = model::NormKind::layer;
        CHECK(remarks(ProviderKind::local, compat, layer, by_tokens).empty());
        const ProviderConditions keys_cut{1, false, true, 8};
        CHECK(mentions(remarks(ProviderKind::local, compat, model, keys_cut), "the keys are cut over 8"));
        CHECK(remarks(ProviderKind::fused, compat, model, keys_cut).empty());
        model::ModelSpec biased = model;
        biased.attention.alibi = true;
        CHECK(mentions(remarks(ProviderKind::local, compat, biased, one_device), "ALiBi"));
        CHECK(remarks(ProviderKind::fused, compat, biased, one_device).empty());
        model::ModelSpec latent = model;
        latent.attention.latent.kv_rank = 16;
        CHECK(remarks(ProviderKind::inference, compat, latent, one_device).empty());
        latent.attention.latent.q_rank = 6;
        latent.attention.latent.rope_dim = 8;
        CHECK(mentions(remarks(ProviderKind::local, compat, latent, {4, false, true}), "q_lora_rank 6 is no multiple"));
        CHECK(remarks(ProviderKind::local, compat, latent, {4, false, true}).size() == 1);
        CHECK(remarks(ProviderKind::local, compat, latent, {2, false, true}).empty());
        CHECK(remarks(ProviderKind::fused, compat, latent, {4, false, true}).empty());
        latent.moe.experts = 8;
        CHECK(mentions(remarks(ProviderKind::inference, compat, latent, one_device), "the norm before experts"));
        CHECK(remarks(ProviderKind::fused, compat, latent, one_device).empty());
    }
}

TEST_CASE("the automatic choice says why, and why not the others") {
    model::ModelSpec with_bias = llama_like();
    with_bias.attention.q_bias = true;
    struct Row {
        const model::ModelSpec model;
        model::Mode mode;
        ProviderConditions conditions;
        ProviderKind taken;
        const char* other;
    };
    const Row rows[] = {
        {llama_like(), model::Mode::decode, by_tokens, ProviderKind::inference, ""},
        {llama_like(), model::Mode::prefill, by_tokens, ProviderKind::fused, "inference: not taken"},
        {with_bias, model::Mode::decode, by_tokens, ProviderKind::fused, "inference: refused"},
        {llama_like(), model::Mode::decode, {4, false, true}, ProviderKind::fused, "inference: refused"},
    };
    for (const Row& row : rows) {
        diag::Diagnostics diagnostics;
        const auto decision = choose(ProviderChoice::automatic, row.model, row.mode, row.conditions, diagnostics);
        REQUIRE(decision);
        CHECK(decision->kind == row.taken);
        REQUIRE_FALSE(decision->reasons.empty());
        CHECK(decision->reasons.front().starts_with(std::string(to_string(row.taken)) + ": taken"));
        CHECK(mentions(decision->reasons, row.other));
        REQUIRE(diagnostics.all().size() == 1);
        CHECK(diagnostics.all()[0].code == "SP5002");
        CHECK(diagnostics.all()[0].severity == diag::Severity::note);
        CHECK(diagnostics.all()[0].pointer == "/backend/provider");
    }
}

TEST_CASE("a chosen provider is taken or refused where it was chosen") {
    model::ModelSpec model = llama_like();
    model.norm.kind = model::NormKind::layer;
    model.mlp.up_bias = true;
    const std::pair<ProviderChoice, ProviderKind> usable[] = {{ProviderChoice::local, ProviderKind::local},
                                                              {ProviderChoice::fused, ProviderKind::fused}};
    for (const auto& [choice, kind] : usable) {
        diag::Diagnostics diagnostics;
        const auto decision = choose(choice, model, model::Mode::decode, by_tokens, diagnostics);
        REQUIRE(decision);
        CHECK(decision->kind == kind);
        CHECK(diagnostics.all().empty());
    }
    diag::Diagnostics diagnostics;
    CHECK_FALSE(choose(ProviderChoice::inference, model, model::Mode::decode, by_tokens, diagnostics));
    REQUIRE(diagnostics.error_count() == 2);
    CHECK(diagnostics.all()[0].code == "SP5001");
    CHECK(diagnostics.all()[0].pointer == "/backend/provider");
    CHECK(diagnostics.all()[0].hint == "use \"auto\" or \"fused\" or \"local\"");
    CHECK(diagnostics.all()[1].message.find("mlp up") != std::string::npos);
    diag::Diagnostics none;
    const auto prefill = choose(ProviderChoice::inference, llama_like(), model::Mode::prefill, by_tokens, none);
    REQUIRE(prefill);
    CHECK(prefill->kind == ProviderKind::inference);
}
