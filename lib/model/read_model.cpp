#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/spelling.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/quantization_fields.h"
#include "model/text_part.h"
#include "model/unsupported.h"

namespace shardplan::model {
namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : ", ") + word;
    }
    return text;
}

struct Source {
    const ConfigValue* config = nullptr;  ///< where the text decoder's fields stand
    std::string_view nested_key;          ///< "text_config", ... or empty
};

/// Configs of vision-language models hold the text decoder in an object of its own.
Source find_decoder(const ConfigValue& config) {
    const std::string_view key = text_part_key(config);
    return {key.empty() ? &config : config.find(key), key};
}

/// Which of the keys that every config has this one lacks.
std::string absent_keys(const ConfigValue& config) {
    std::vector<std::string> absent;
    for (const std::string_view key : {"architectures", "hidden_size", "intermediate_size", "num_hidden_layers",
                                       "num_attention_heads", "vocab_size"}) {
        if (config.find(key) == nullptr) {
            absent.emplace_back(key);
        }
    }
    return joined(absent);
}

/// "; the config has no num_hidden_layers, ..." for the form of another tool.
std::string absent_text(const ConfigValue& config) {
    const bool foreign = config.find("num_hidden_layers") == nullptr && config.find("num_attention_heads") == nullptr;
    const std::string absent = foreign ? absent_keys(config) : "";
    return absent.empty() ? "" : fmt::format("; of the keys of a Hugging Face config it lacks {}", absent);
}

/// "" after a diagnostic.
std::string read_type(const ConfigValue& config, const Source& source, diag::Diagnostics& diagnostics) {
    const ConfigValue* type = source.config->find("model_type");
    if (type == nullptr || type->is_null()) {
        // The text part of llava leaves its type to the default of that class.
        const ConfigValue* outer = config.find("model_type");
        const bool is_llava = outer != nullptr && outer->string() != nullptr && outer->string()->starts_with("llava");
        if (!source.nested_key.empty() && is_llava) {
            return "llama";
        }
        if (!source.nested_key.empty() && outer != nullptr && outer->string() != nullptr && !outer->string()->empty()) {
            return *outer->string();
        }
        const std::string absent = absent_keys(*source.config);
        diagnostics.report(
            "SP2001",
            fmt::format("the config has no model_type{}, so the form of its layers is not known",
                        absent.empty() ? "" : fmt::format(" (nor {})", absent)),
            source.config->pointer,
            "give a Hugging Face config.json; supported model types: " + joined(supported_model_types()));
        return {};
    }
    if (type->string() == nullptr) {
        FieldReader(*source.config, diagnostics).wrong_type(*type, "text");
        return {};
    }
    if (type->string()->empty()) {
        diagnostics.report("SP2001", "model_type is empty, so the form of the layers is not known", type->pointer,
                           "supported model types: " + joined(supported_model_types()));
    }
    return *type->string();
}

const FamilyEntry* find_family(std::string_view type) {
    const auto table = family_table();
    const auto it =
        std::find_if(table.begin(), table.end(), [&](const FamilyEntry& entry) { return entry.model_type == type; });
    return it == table.end() ? nullptr : &*it;
}

void report_unsupported(const std::string& type, const ConfigValue& config, diag::Diagnostics& diagnostics) {
    const std::vector<std::string> supported = supported_model_types();
    const std::string_view kind = unsupported_kind(type);
    const std::string nearest = kind.empty() ? base::nearest_word(type, supported) : "";
    const std::string message =
        kind.empty()
            ? fmt::format("model type \"{}\" is not known{}{}", type,
                          nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest), absent_text(config))
            : fmt::format("model type \"{}\" is not supported yet: {}", type, kind);
    const ConfigValue* at = config.find("model_type");
    diagnostics.report("SP2002", message, at != nullptr ? at->pointer : config.pointer,
                       "supported model types: " + joined(supported));
}

void read_dtype(FieldReader& fields, const ConfigValue& outer, ModelSpec& model) {
    FieldReader outer_fields(outer, fields.diagnostics());
    FieldReader& reader = fields.find({"torch_dtype", "dtype"}) != nullptr ? fields : outer_fields;
    const std::string name = reader.word_or({"torch_dtype", "dtype"}, "");
    if (!outer_fields.ok()) {
        fields.fail();
    }
    if (name.empty()) {
        model.notes.emplace_back("torch_dtype is absent: bfloat16 is assumed");
        return;
    }
    if (name == "auto") {
        fields.diagnostics().report("SP2007", "torch_dtype is \"auto\", whatever the weights are: bfloat16 is assumed",
                                    reader.pointer({"torch_dtype", "dtype"}),
                                    "write the dtype of the weights, or set workload.dtype");
        return;
    }
    const std::optional<tensor::DType> dtype = tensor::parse_dtype(name);
    const bool floating = dtype == tensor::DType::f32 || dtype == tensor::DType::bf16 || dtype == tensor::DType::f16 ||
                          dtype == tensor::DType::f64;
    if (!floating) {
        reader.report("SP1008", {"torch_dtype", "dtype"}, fmt::format("torch_dtype \"{}\" is not known", name),
                      "known: float32, bfloat16, float16, float64, auto (each also with \"torch.\" before it)");
        fields.fail();
        return;
    }
    model.stored_dtype = *dtype;
}

/// Buffers that old checkpoints hold, and the second copy of a tied embedding.
void add_ignored_names(ModelSpec& model) {
    model.names.ignored.emplace_back(R"(.*rotary_emb\.inv_freq)");
    if (!model.tied_embeddings) {
        return;
    }
    std::string pattern;
    for (const char c : model.names.lm_head) {
        pattern += c == '.' ? "\\." : std::string(1, c);
    }
    model.names.ignored.push_back(pattern + R"(\.weight)");
}

/// False after an error.
bool add_notes(const ConfigValue& config, const Source& source, diag::Diagnostics& diagnostics, ModelSpec& model) {
    if (!source.nested_key.empty()) {
        model.notes.push_back(fmt::format(
            "only the text decoder ({}) is planned; other parts of the model are left out", source.nested_key));
    }
    if (has_llm_analysis_names(*source.config)) {
        diagnostics.report(
            "SP2007",
            fmt::format("the fields have the names of llm-analysis (hidden_dim, ffn_embed_dim ...), which "
                        "say less than Hugging Face's: the rest is what \"{}\" usually is",
                        model.model_type),
            source.config->pointer, "give the model's own config.json");
    }
    for (const ConfigValue* place : {source.config, &config}) {
        const ConfigValue* quantization = place->find("quantization_config");
        if (quantization == nullptr || quantization->is_null()) {
            continue;
        }
        if (!quantization->is_object()) {
            FieldReader(*place, diagnostics).wrong_type(*quantization, "an object");
            return false;
        }
        const ConfigValue* method = quantization->find("quant_method");
        model.notes.push_back(
            fmt::format("quantization_config ({}) is not applied: weights count in the workload's dtype",
                        method != nullptr ? describe(*method) : "no quant_method"));
        return read_quantization(*quantization, diagnostics, model.quantization);
    }
    return true;
}

}  // namespace

std::vector<std::string> supported_model_types() {
    std::vector<std::string> types;
    for (const FamilyEntry& entry : family_table()) {
        types.emplace_back(entry.model_type);
    }
    std::sort(types.begin(), types.end());
    return types;
}

std::optional<ModelSpec> read_model(const ConfigValue& config, diag::Diagnostics& diagnostics) {
    if (!config.is_object()) {
        diagnostics.report("SP1005", fmt::format("the model config must be an object, not {}", describe(config)),
                           config.pointer);
        return std::nullopt;
    }
    const Source source = find_decoder(config);
    const std::string type = read_type(config, source, diagnostics);
    if (type.empty()) {
        return std::nullopt;
    }
    const FamilyEntry* family = find_family(type);
    if (family == nullptr) {
        report_unsupported(type, *source.config, diagnostics);
        return std::nullopt;
    }
    FieldReader fields(*source.config, diagnostics);
    std::string_view key;
    if (const std::string_view kind = unsupported_fields(*source.config, family->experts, family->latent, key);
        !kind.empty()) {
        fields.report("SP2002", {key}, fmt::format("{} says {}, which is not supported yet", key, kind));
        return std::nullopt;
    }
    ModelSpec model;
    model.family = family->family;
    model.model_type = type;
    family->read(fields, model);
    read_dtype(fields, config, model);
    if (!source.nested_key.empty()) {
        const ConfigValue* outer = config.find("model_type");
        use_text_part_names(model, outer != nullptr && outer->string() != nullptr ? *outer->string() : type);
    }
    add_ignored_names(model);
    const bool quantization_good = add_notes(config, source, diagnostics, model);
    return fields.ok() && quantization_good ? std::optional<ModelSpec>(std::move(model)) : std::nullopt;
}

}  // namespace shardplan::model
