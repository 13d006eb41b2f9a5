#include "config/model_inline.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/file.h"
#include "config/model_file.h"
#include "config/python_numbers.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

ConfigValue* model_of(Document& document) {
    auto* root = std::get_if<ConfigValue::Object>(&document.root.data);
    if (root == nullptr) {
        return nullptr;
    }
    const auto it =
        std::find_if(root->begin(), root->end(), [](const auto& member) { return member.first == "model"; });
    return it == root->end() || it->second.string() == nullptr || it->second.string()->empty() ? nullptr : &it->second;
}

bool read_into(Document& document, ConfigValue& model, const std::string& directory, diag::Diagnostics& diagnostics) {
    diag::Diagnostics ignored;
    Limits limits;
    limits.python_numbers = true;
    const std::string file = config_in_directory(model_path(*model.string(), directory));
    const auto text = read_file(file, limits.bytes, ignored);
    auto config = text ? parse_document(*text, file, ignored, limits, "/model") : std::nullopt;
    if (!config || !config->root.is_object()) {
        return false;
    }
    report_python_numbers(*config, "/model", diagnostics);
    document.sources.push_back(std::move(config->sources.front()));
    for (const auto& [pointer, location] : config->locations) {
        document.locations[pointer] = {document.sources.size() - 1, location.key, location.value};
    }
    model = std::move(config->root);
    return true;
}

}  // namespace

std::string model_path(const std::string& name, const std::string& directory) {
    const std::filesystem::path base = directory.empty() ? "." : directory;
    const std::string path = (base / name).lexically_normal().string();
    return path == "-" ? "./-" : path;
}

Overrides inline_model(Document& document, const std::string& directory, const Overrides& overrides,
                       diag::Diagnostics& diagnostics) {
    ConfigValue* model = changes_within(overrides, "model") ? model_of(document) : nullptr;
    if (model == nullptr || read_into(document, *model, directory, diagnostics)) {
        return overrides;
    }
    Overrides rest = overrides;
    std::erase_if(rest.set, [](const std::string& text) { return text.starts_with("model."); });
    return rest;
}

}  // namespace shardplan::config
