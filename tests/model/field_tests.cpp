// Errors in configs: code, place and the value in the message.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "model/families/family.h"
#include "model/field_reader.h"
#include "model/model_cases.h"

namespace shardplan::model {
namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("one wrong field") {
    struct Row {
        const char* changes;
        const char* code;
        const char* pointer;
        const char* part;  ///< of the message
    };
    const Row rows[] = {
        {R"({"num_attention_heads": true})", "SP1005", "/num_attention_heads", "true (boolean)"},
        {R"({"hidden_size": "48"})", "SP1005", "/hidden_size", "\"48\" (string)"},
        {R"({"hidden_size": 48.5})", "SP1005", "/hidden_size", "48.5"},
        {R"({"hidden_size": [48]})", "SP1005", "/hidden_size", "an array"},
        {R"({"hidden_size": 1e300})", "SP1006", "/hidden_size", "1 ... 1099511627776"},
        {R"({"num_attention_heads": 0})", "SP1006", "/num_attention_heads", "not 0"},
        {R"({"num_hidden_layers": -2})", "SP1006", "/num_hidden_layers", "not -2"},
        {R"({"num_hidden_layers": 100000000})", "SP1006", "/num_hidden_layers", "100000000"},
        {R"({"vocab_size": null})", "SP1007", "", "\"vocab_size\" (nor \"padded_vocab_size\")"},
        {R"({"num_key_value_heads": 3})", "SP2003", "/num_key_value_heads", "3 key/value heads"},
        {R"({"hidden_size": 50})", "SP2003", "/num_attention_heads", "50 is not a multiple of the 4 heads"},
        {R"({"head_dim": 7})", "SP2003", "/head_dim", "even number"},
        {R"({"n_embd": 64})", "SP2003", "/n_embd", "\"hidden_size\" is 48"},
        {R"({"tie_word_embeddings": "false"})", "SP1005", "/tie_word_embeddings", "true or false"},
        {R"({"hidden_act": "swiglu2"})", "SP1008", "/hidden_act", "swiglu2"},
        {R"({"hidden_act": 3})", "SP1005", "/hidden_act", "text"},
        {R"({"torch_dtype": "float12"})", "SP1008", "/torch_dtype", "float12"},
        {R"({"torch_dtype": "int8"})", "SP1008", "/torch_dtype", "int8"},
        {R"({"rms_norm_eps": -1e-6})", "SP1006", "/rms_norm_eps", "greater than 0"},
        {R"({"rope_theta": "big"})", "SP1005", "/rope_theta", "a number"},
        {R"({"rope_scaling": {"type": "cubic", "factor": 2}})", "SP1008", "/rope_scaling/type", "cubic"},
        {R"({"rope_scaling": {"type": "linear"}})", "SP1007", "/rope_scaling", "factor"},
        {R"({"rope_scaling": 2})", "SP1005", "/rope_scaling", "an object"},
        {R"({"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1, 1, 1, 1, 1, 1]}})", "SP2003",
         "/rope_scaling/short_factor", "1 values, 6"},
        {R"({"model_type": "phi", "partial_rotary_factor": 1.5})", "SP1006", "/partial_rotary_factor", "1.5"},
        {R"({"model_type": "gptj", "rotary_dim": 64})", "SP2003", "/rotary_dim", "more than the 12 of a head"},
        {R"({"model_type": "gemma2", "layer_types": ["full_attention"]})", "SP2003", "/layer_types", "4 layers"},
        {R"({"model_type": "mpt", "attn_config": {"alibi": false}})", "SP2002", "/attn_config/alibi", "alibi"},
        {R"({"model_type": "bloom", "apply_residual_connection_post_layernorm": true})", "SP2002",
         "/apply_residual_connection_post_layernorm", "bloom"},
        {R"({"model_type": "qwen", "intermediate_size": 111})", "SP2003", "/intermediate_size", "even"},
        {R"({"model_type": null})", "SP2001", "", "model_type"},
        {R"({"model_type": 7})", "SP1005", "/model_type", "7"},
        {R"({"model_type": "lama"})", "SP2002", "/model_type", "did you mean \"llama\""},
        {R"({"model_type": "jetmoe"})", "SP2002", "/model_type", "mixture of experts"},
        {R"({"model_type": "minimax"})", "SP2002", "/model_type", "linear attention"},
        {R"({"model_type": "t5"})", "SP2002", "/model_type", "encoder-decoder"},
        {R"({"model_type": "mamba"})", "SP2002", "/model_type", "state-space"},
        {R"({"model_type": "deepseek_v32"})", "SP2002", "/model_type", "indexer"},
        {R"({"num_local_experts": 8})", "SP2002", "/num_local_experts", "mixture of experts"},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        const auto errors = read_errors(small_config(row.changes));
        REQUIRE(errors.size() == 1);
        CHECK(errors[0].code == row.code);
        CHECK(errors[0].pointer == row.pointer);
        INFO(errors[0].message);
        CHECK(contains(errors[0].message, row.part));
    }
}

TEST_CASE("all errors at once") {
    const auto errors = read_errors(small_config(
        R"({"hidden_size": "x", "vocab_size": -1, "rms_norm_eps": true, "num_hidden_layers": null, "mlp_bias": 1})"));
    CHECK(errors.size() == 5);
}

TEST_CASE("what is accepted") {
    CHECK(small_model(R"({"hidden_size": 48.0})").hidden == 48);
    CHECK(small_model(R"({"hidden_size": null, "n_embd": 96})").hidden == 96);
    CHECK(small_model(R"({"num_key_value_heads": null})").attention.kv_heads == 4);
    CHECK(small_model(R"({"torch_dtype": "torch.bfloat16"})").stored_dtype == tensor::DType::bf16);
    CHECK(small_model(R"({"torch_dtype": null, "dtype": "float16"})").stored_dtype == tensor::DType::f16);
    CHECK(small_model(R"({"torch_dtype": "auto"})").stored_dtype == tensor::DType::bf16);
    const ModelSpec untyped = small_model(R"({"torch_dtype": null})");
    CHECK(untyped.stored_dtype == tensor::DType::bf16);
    REQUIRE(untyped.notes.size() == 1);
    CHECK(contains(untyped.notes[0], "absent"));
    CHECK(small_model(R"({"unknown_key": {"x": 1}})").notes.empty());
    const ModelSpec quantized = small_model(R"({"quantization_config": {"quant_method": "fp8"}})");
    REQUIRE(quantized.notes.size() == 1);
    CHECK(contains(quantized.notes[0], "fp8"));
}

TEST_CASE("what a config leaves open is a warning") {
    for (const char* changes : {R"({"torch_dtype": "auto"})", R"({"model_type": "gemma2", "vocab_size": null})",
                                R"({"hidden_size": null, "hidden_dim": 48})"}) {
        CAPTURE(changes);
        diag::Diagnostics diagnostics;
        CHECK(read_model(to_config(small_config(changes)), diagnostics));
        REQUIRE(diagnostics.all().size() == 1);
        CHECK(diagnostics.all().front().code == "SP2007");
        CHECK(diagnostics.all().front().severity == diag::Severity::warning);
    }
    CHECK(read_errors(small_config(R"({"vocab_size": null})")).size() == 1);
}

TEST_CASE("the text part of a config for more than text") {
    Json config = Json::parse(R"({"model_type": "llava", "hidden_size": "not this one"})");
    config["text_config"] = small_config(R"({"torch_dtype": null})");
    config["torch_dtype"] = "float16";
    const ModelSpec model = read_ok(config);
    CHECK(model.hidden == 48);
    CHECK(model.stored_dtype == tensor::DType::f16);
    REQUIRE(model.notes.size() == 1);
    CHECK(contains(model.notes[0], "text_config"));
    config["text_config"].erase("model_type");
    CHECK(read_ok(config).model_type == "llama");
    config["text_config"]["vocab_size"] = true;
    CHECK(read_errors(config)[0].pointer == "/text_config/vocab_size");
}

TEST_CASE("a document that is no object") {
    CHECK(read_errors(Json::array())[0].code == "SP1005");
    CHECK(read_errors(Json())[0].code == "SP1005");
}

TEST_CASE("integers that 64 bits cannot hold") {
    ConfigValue config = to_config(small_config());
    for (auto& [key, value] : std::get<ConfigValue::Object>(config.data)) {
        if (key == "vocab_size") {
            value.data = ConfigValue::Huge{"99999999999999999999"};
        }
    }
    diag::Diagnostics diagnostics;
    CHECK_FALSE(read_model(config, diagnostics).has_value());
    REQUIRE(diagnostics.all().size() == 1);
    CHECK(diagnostics.all()[0].code == "SP1006");
    CHECK(contains(diagnostics.all()[0].message, "99999999999999999999"));
}

TEST_CASE("the table of families is sorted and complete") {
    const auto table = family_table();
    CHECK(std::is_sorted(table.begin(), table.end(),
                         [](const FamilyEntry& a, const FamilyEntry& b) { return a.model_type < b.model_type; }));
    for (const FamilyEntry& entry : table) {
        CHECK((entry.read != nullptr));
    }
    CHECK(supported_model_types().size() == table.size());
}

TEST_CASE("values say their type") {
    CHECK(to_config(Json::parse("null")).type_name() == "null");
    CHECK(to_config(Json::parse("1.5")).type_name() == "number");
    CHECK(to_config(Json::parse("{}")).type_name() == "object");
    const ConfigValue value = to_config(Json::parse(R"({"a/b": 1})"));
    REQUIRE(value.find("a/b") != nullptr);
    CHECK(value.find("a/b")->pointer == "/a~1b");
    CHECK(value.find("c") == nullptr);
    CHECK(value.find("a/b")->find("c") == nullptr);
}

}  // namespace
}  // namespace shardplan::model
