// The presets: every parameter of a checkpoint reaches the rule that was written for it, or the catch-all where
// upstream has no rule; and the compiled tables are the recorded ones.
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "partition/golden.h"
#include "partition/rules.h"

using namespace shardplan::partition;

namespace {

constexpr FlaxLeaf kernel = FlaxLeaf::kernel;
constexpr FlaxLeaf embedding = FlaxLeaf::embedding;
constexpr FlaxLeaf scale = FlaxLeaf::scale;
constexpr FlaxLeaf bias = FlaxLeaf::bias;

constexpr const char* column = "P(('fsdp','sp'),'tp')";
constexpr const char* row_wise = "P('tp',('fsdp','sp'))";
constexpr const char* sp_major = "P('tp',('sp','fsdp'))";
constexpr const char* storage = "P(('fsdp','sp'),)";
constexpr const char* tp_only = "P('tp',)";
constexpr const char* replicated = "P(None,)";

struct Row {
    const char* model_types;  ///< separated by blanks
    const char* name;
    FlaxLeaf leaf;
    int index;
    const char* spec;
};

std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> result;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        result.push_back(word);
    }
    return result;
}

template <std::size_t N>
void check_rows(RuleSource source, const Row (&rows)[N]) {
    for (const Row& row : rows) {
        for (const std::string& model_type : words(row.model_types)) {
            const std::string path = flax_path(source, model_type, row.name, row.leaf);
            CAPTURE(model_type);
            CAPTURE(path);
            const auto table = RuleTable::preset(source, model_type);
            REQUIRE(table);
            const auto match = table->match(path);
            REQUIRE(match);
            CHECK(match->index == row.index);
            CHECK(match->rule == &table->rules()[static_cast<std::size_t>(match->index)]);
            CHECK(to_string(match->rule->spec) == row.spec);
        }
    }
}

/// A recorded spec as we write it: 0.2 has symbols, and the comma of a single entry is left out.
std::string as_ours(std::string recorded) {
    const std::pair<const char*, const char*> symbols[] = {
        {"ColumnWise", column},           {"RowWise", row_wise},
        {"Replicated", replicated},       {"MoE:column", "P('ep',None,'tp')"},
        {"MoE:row", "P('ep','tp',None)"}, {"MoE:column:bias", "P('ep','tp')"},
        {"MoE:row:bias", "P('ep','tp')"},
    };
    for (const auto& [symbol, text] : symbols) {
        if (recorded == symbol) {
            return text;
        }
    }
    recorded.erase(std::remove(recorded.begin(), recorded.end(), ' '), recorded.end());
    int depth = 0;
    const bool one = std::none_of(recorded.begin() + 2, recorded.end() - 1, [&](char c) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        return c == ',' && depth == 0;
    });
    if (one && recorded != "P()") {
        recorded.back() = ',';
        recorded += ')';
    }
    return recorded;
}

/// The (pattern, spec) pairs of every table of a release that ran, specs as we write them.
std::set<std::vector<std::string>> recorded_tables(const std::string& file) {
    std::set<std::vector<std::string>> tables;
    const auto record = read_golden(file);
    for (const auto& [title, rules] : record.items()) {
        std::vector<std::string> table;
        for (const auto& rule : rules.is_array() ? rules : nlohmann::ordered_json::array()) {
            table.push_back(rule[0]);
            table.push_back(as_ours(rule[1]));
        }
        tables.insert(table);
    }
    return tables;
}

constexpr const char* seed_llama_like = "llama mistral qwen2 gemma gemma2 olmo olmo2";
constexpr Row seed_rows[] = {
    {seed_llama_like, "model.embed_tokens.weight", embedding, 0, row_wise},
    {seed_llama_like, "model.layers.31.self_attn.q_proj.weight", kernel, 1, column},
    {seed_llama_like, "model.layers.31.self_attn.k_proj.weight", kernel, 1, column},
    {seed_llama_like, "model.layers.31.self_attn.v_proj.weight", kernel, 1, column},
    {"llama stablelm", "model.layers.0.self_attn.o_proj.weight", kernel, 2, sp_major},
    {"mistral qwen2 gemma gemma2 olmo olmo2", "model.layers.0.self_attn.o_proj.weight", kernel, 2, row_wise},
    {seed_llama_like, "model.layers.0.mlp.gate_proj.weight", kernel, 3, column},
    {seed_llama_like, "model.layers.0.mlp.down_proj.weight", kernel, 4, row_wise},
    {seed_llama_like, "model.layers.0.mlp.up_proj.weight", kernel, 5, column},
    {"llama mistral qwen2 gemma gemma2", "model.layers.0.input_layernorm.weight", scale, 6, replicated},
    {seed_llama_like, "model.layers.0.post_attention_layernorm.weight", scale, 7, replicated},
    {seed_llama_like, "model.norm.weight", scale, 8, replicated},
    {seed_llama_like, "lm_head.weight", kernel, 9, column},
    {"llama qwen2", "model.layers.0.self_attn.q_proj.bias", bias, 10, replicated},
    {"gemma2", "model.layers.0.pre_feedforward_layernorm.weight", scale, 10, replicated},
    {"olmo2", "model.layers.0.self_attn.q_norm.weight", scale, 10, replicated},
    {"stablelm", "model.embed_tokens.weight", embedding, 0, storage},
    {"stablelm", "model.layers.0.mlp.down_proj.weight", kernel, 4, storage},
    {"stablelm", "model.layers.0.self_attn.q_proj.bias", bias, 10, storage},
    {"gpt2", "transformer.wte.weight", embedding, 0, row_wise},
    {"gpt2", "wte.weight", embedding, 0, row_wise},
    {"gpt2", "lm_head.weight", kernel, 1, column},
    {"gpt2", "h.0.attn.c_attn.weight", kernel, 2, storage},
    {"gpt2", "transformer.wpe.weight", embedding, 2, storage},
    {"gptj", "transformer.wte.weight", embedding, 0, storage},
    {"gptj", "transformer.h.0.attn.q_proj.weight", kernel, 1, column},
    {"gptj", "transformer.h.0.attn.out_proj.weight", kernel, 2, storage},
    {"gptj", "transformer.h.0.mlp.fc_out.weight", kernel, 3, column},
    {"gptj", "transformer.h.0.mlp.fc_out.bias", bias, 4, storage},
    {"gptj", "transformer.h.0.mlp.fc_in.weight", kernel, 5, storage},
    {"gptj", "lm_head.weight", kernel, 7, storage},
    {"gptj", "lm_head.bias", bias, 8, storage},
    {"gptj", "transformer.h.0.ln_1.weight", scale, 9, storage},
    {"gpt_neox", "gpt_neox.embed_in.weight", embedding, 0, row_wise},
    {"gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight", kernel, 1, column},
    {"gpt_neox", "gpt_neox.layers.0.attention.query_key_value.bias", bias, 2, storage},
    {"gpt_neox", "gpt_neox.layers.0.attention.dense.weight", kernel, 3, row_wise},
    {"gpt_neox", "gpt_neox.layers.0.attention.dense.bias", bias, 4, storage},
    {"gpt_neox", "gpt_neox.layers.0.mlp.dense_h_to_4h.weight", kernel, 5, column},
    {"gpt_neox", "gpt_neox.layers.0.mlp.dense_4h_to_h.weight", kernel, 7, row_wise},
    {"gpt_neox", "gpt_neox.layers.0.post_attention_layernorm.bias", bias, 9, replicated},
    {"gpt_neox", "gpt_neox.layers.0.input_layernorm.weight", scale, 10, replicated},
    {"gpt_neox", "gpt_neox.final_layer_norm.weight", scale, 11, replicated},
    {"gpt_neox", "embed_out.weight", kernel, 12, column},
    {"falcon", "transformer.word_embeddings.weight", embedding, 0, row_wise},
    {"falcon", "transformer.h.0.self_attention.query_key_value.weight", kernel, 1, row_wise},
    {"falcon", "transformer.h.0.self_attention.dense.weight", kernel, 2, row_wise},
    {"falcon", "transformer.h.0.mlp.dense_4h_to_h.weight", kernel, 3, row_wise},
    {"falcon", "transformer.h.0.mlp.dense_h_to_4h.weight", kernel, 4, row_wise},
    {"falcon", "lm_head.weight", kernel, 5, row_wise},
    {"falcon", "transformer.ln_f.bias", bias, 6, storage},
    {"falcon", "transformer.ln_f.weight", scale, 7, storage},
    {"falcon", "transformer.h.0.input_layernorm.weight", scale, 11, replicated},
    {"phi phi3", "model.embed_tokens.weight", embedding, 0, column},
    {"phi", "model.final_layernorm.weight", scale, 1, replicated},
    {"phi", "model.layers.0.mlp.fc1.weight", kernel, 3, column},
    {"phi", "model.layers.0.mlp.fc1.bias", bias, 4, tp_only},
    {"phi", "model.layers.0.mlp.fc2.weight", kernel, 5, row_wise},
    {"phi", "model.layers.0.mlp.fc2.bias", bias, 6, storage},
    {"phi", "model.layers.0.self_attn.dense.weight", kernel, 7, row_wise},
    {"phi", "model.layers.0.self_attn.dense.bias", bias, 8, tp_only},
    {"phi", "model.layers.0.self_attn.v_proj.weight", kernel, 9, column},
    {"phi", "lm_head.bias", bias, 12, tp_only},
    {"phi", "model.layers.0.input_layernorm.weight", scale, 13, replicated},
    {"phi3", "model.norm.weight", scale, 1, storage},
    {"phi3", "model.layers.0.post_attention_layernorm.weight", scale, 1, storage},
    {"phi3", "model.layers.0.input_layernorm.weight", scale, 1, storage},
    {"phi3", "model.layers.0.mlp.gate_up_proj.weight", kernel, 4, column},
    {"phi3", "model.layers.0.mlp.down_proj.weight", kernel, 5, column},
    {"phi3", "model.layers.0.self_attn.o_proj.weight", kernel, 6, column},
    {"phi3", "model.layers.0.self_attn.qkv_proj.weight", kernel, 7, column},
    {"cohere", "model.layers.0.self_attn.q_proj.weight", kernel, 1, column},
    {"cohere", "model.layers.0.mlp.up_proj.weight", kernel, 13, replicated},
    {"internlm2", "model.tok_embeddings.weight", embedding, 0, row_wise},
    {"internlm2", "model.layers.0.attention.wqkv.weight", kernel, 1, column},
    {"internlm2", "model.layers.0.attention.wo.weight", kernel, 2, row_wise},
    {"internlm2", "model.layers.0.feed_forward.w2.weight", kernel, 4, row_wise},
    {"internlm2", "output.weight", kernel, 9, column},
    {"mixtral", "model.layers.0.block_sparse_moe.experts.7.w2.weight", kernel, 4, row_wise},
    {"mpt", "transformer.blocks.0.attn.Wqkv.weight", kernel, 1, column},
    {"mpt", "transformer.blocks.0.ffn.down_proj.weight", kernel, 3, row_wise},
};

constexpr const char* easydel_llama_like =
    "llama mistral qwen2 qwen3 gemma gemma2 gemma3_text cohere2 olmo olmo2 olmo3 smollm3";
constexpr Row easydel_rows[] = {
    {easydel_llama_like, "model.embed_tokens.weight", embedding, 0, column},
    {easydel_llama_like, "model.layers.0.self_attn.q_proj.weight", kernel, 1, column},
    {easydel_llama_like, "model.layers.0.self_attn.o_proj.weight", kernel, 2, row_wise},
    {"llama mistral gemma gemma2 cohere2 olmo smollm3", "model.layers.0.self_attn.k_proj.bias", bias, 3, replicated},
    {"qwen3", "model.layers.0.self_attn.q_norm.weight", scale, 3, replicated},
    {"qwen3", "model.layers.0.self_attn.q_proj.bias", bias, 4, replicated},
    {"qwen3", "model.layers.0.mlp.down_proj.weight", kernel, 6, row_wise},
    {"olmo2 olmo3 gemma3_text", "model.layers.0.self_attn.k_norm.weight", scale, 4, replicated},
    {"llama mistral gemma gemma2 cohere2 olmo smollm3", "model.layers.0.mlp.up_proj.weight", kernel, 4, column},
    {"llama mistral gemma gemma2 cohere2 olmo smollm3", "model.layers.0.mlp.down_proj.weight", kernel, 5, row_wise},
    {"llama mistral gemma gemma2", "model.layers.0.input_layernorm.weight", scale, 7, replicated},
    {"llama mistral gemma gemma2 smollm3", "model.norm.weight", scale, 7, replicated},
    {"llama mistral gemma gemma2", "lm_head.weight", kernel, 8, column},
    {"cohere", "model.layers.0.mlp.gate_proj.weight", kernel, 4, column},
    {"cohere", "model.norm.weight", scale, 7, replicated},
    {"phi3", "model.layers.0.self_attn.qkv_proj.weight", kernel, 1, column},
    {"phi3", "model.layers.0.mlp.gate_up_proj.weight", kernel, 4, column},
    {"phi", "model.layers.0.self_attn.dense.weight", kernel, 2, row_wise},
    {"phi", "model.layers.0.mlp.fc1.weight", kernel, 5, column},
    {"phi", "model.final_layernorm.weight", scale, 7, replicated},
    {"phi", "model.layers.0.self_attn.q_proj.bias", bias, 10, replicated},
    {"gpt2", "h.0.attn.c_attn.weight", kernel, 2, column},
    {"gpt2", "h.0.attn.c_proj.weight", kernel, 4, row_wise},
    {"gpt2", "h.0.mlp.c_proj.weight", kernel, 6, row_wise},
    {"gpt2", "ln_f.weight", scale, 7, replicated},
    {"gpt2", "wpe.weight", embedding, 1, replicated},
    {"gptj", "transformer.h.0.attn.out_proj.weight", kernel, 2, row_wise},
    {"gptj", "transformer.h.0.mlp.fc_in.weight", kernel, 4, column},
    {"gptj", "transformer.ln_f.weight", scale, 8, replicated},
    {"gpt_neox", "gpt_neox.embed_in.weight", embedding, 0, column},
    {"gpt_neox", "gpt_neox.layers.0.attention.dense.weight", kernel, 2, row_wise},
    {"gpt_neox", "embed_out.weight", kernel, 5, column},
    {"gpt_neox", "gpt_neox.layers.0.attention.dense.bias", bias, 8, replicated},
    {"falcon", "transformer.h.0.self_attention.query_key_value.weight", kernel, 1, column},
    {"falcon", "transformer.h.0.ln_mlp.weight", scale, 5, replicated},
    {"opt", "model.decoder.embed_positions.weight", embedding, 1, replicated},
    {"opt", "model.decoder.project_out.weight", kernel, 3, row_wise},
    {"opt", "decoder.layers.0.self_attn.out_proj.weight", kernel, 5, row_wise},
    {"opt", "decoder.layers.0.fc2.weight", kernel, 7, row_wise},
    {"opt", "decoder.layers.0.fc2.bias", bias, 11, replicated},
    {"stablelm", "model.layers.0.self_attn.q_layernorm.norms.4.weight", scale, 4, replicated},
    {"stablelm", "model.norm.bias", bias, 10, replicated},
    {"glm glm4", "model.layers.0.mlp.gate_up_proj.weight", kernel, 13, replicated},
    {"mixtral", "model.layers.0.block_sparse_moe.experts.7.w1.weight", kernel, 6, "P('ep',None,'tp')"},
    {"mixtral", "model.layers.0.block_sparse_moe.experts.7.w2.weight", kernel, 7, "P('ep','tp',None)"},
    {"mpt", "transformer.norm_f.weight", scale, 5, replicated},
    {"internlm2", "model.layers.0.feed_forward.w2.weight", kernel, 4, row_wise},
};

}  // namespace

TEST_CASE("0.0.80: parameters and their rules") {
    check_rows(RuleSource::seed_0_0_80, seed_rows);
}

TEST_CASE("0.2: parameters and their rules") {
    check_rows(RuleSource::easydel_0_2, easydel_rows);
}

TEST_CASE("the compiled tables are the recorded ones") {
    const std::tuple<RuleSource, const char*, std::size_t> releases[] = {
        {RuleSource::seed_0_0_80, "rules_0.0.80.json", 20}, {RuleSource::easydel_0_2, "rules_v0.2.0.2.json", 36}};
    for (const auto& [source, file, count] : releases) {
        const auto recorded = recorded_tables(file);
        const std::vector<std::string> types = preset_model_types(source);
        CHECK(types.size() == count);
        CHECK(std::is_sorted(types.begin(), types.end()));
        for (const std::string& type : types) {
            CAPTURE(type);
            const auto table = RuleTable::preset(source, type);
            REQUIRE(table);
            std::vector<std::string> ours;
            for (const ParameterRule& rule : table->rules()) {
                ours.push_back(rule.pattern);
                ours.push_back(to_string(rule.spec));
                CHECK(rule.pointer.empty());
            }
            CHECK(recorded.contains(ours));
            CHECK_FALSE(table->depends_on_layer());
        }
    }
}

TEST_CASE("what has no preset") {
    CHECK_FALSE(RuleTable::preset(RuleSource::seed_0_0_80, "qwen3"));
    CHECK_FALSE(RuleTable::preset(RuleSource::seed_0_0_80, "opt"));
    CHECK_FALSE(RuleTable::preset(RuleSource::easydel_0_2, "bloom"));
    CHECK_FALSE(RuleTable::preset(RuleSource::derived, "llama"));
    CHECK(preset_model_types(RuleSource::custom).empty());
}

TEST_CASE("paths of model types without a preset") {
    CHECK(flax_path(RuleSource::derived, "llama", "model.norm.weight", scale) == "model/norm/scale");
    CHECK(flax_path(RuleSource::easydel_0_2, "bloom", "h.0.mlp.bias", bias) == "h/0/mlp/bias");
    CHECK(flax_path(RuleSource::seed_0_0_80, "gptj", "lm_head.weight", kernel) == "lm_head/kernel");
    CHECK(flax_path(RuleSource::easydel_0_2, "qwen3_moe", "model.layers.1.mlp.experts.12.up_proj.weight", kernel) ==
          "model/layers/1/mlp/experts/up_proj/kernel");
}
