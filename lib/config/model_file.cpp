#include "config/model_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "config/file.h"
#include "config/object_reader.h"
#include "config/python_numbers.h"

namespace shardplan::config {

std::string config_in_directory(const std::string& path) {
    std::error_code ignored;
    if (path != "-" && std::filesystem::is_directory(path, ignored)) {
        return (std::filesystem::path(path) / "config.json").string();
    }
    return path;
}

std::optional<model::ModelSpec> read_model_config(const Document& document, diag::Diagnostics& diagnostics) {
    diag::Diagnostics found;
    report_python_numbers(document, "", found);
    std::optional<model::ModelSpec> model;
    if (document.root.is_object()) {
        model = model::read_model(document.root, found);
    } else {
        found.report("SP1005", fmt::format("a model config must be an object, not {}", describe(document.root)));
    }
    attach_spans(found, document);
    for (const diag::Diagnostic& diagnostic : found.all()) {
        diagnostics.add(diagnostic);
    }
    return found.has_errors() ? std::nullopt : model;
}

std::optional<model::ModelSpec> read_model_config(const std::string& path, diag::Diagnostics& diagnostics,
                                                  const std::string& pointer, std::vector<Document>* documents) {
    Limits limits;
    limits.python_numbers = true;
    const std::string file = config_in_directory(path);
    const auto text = read_file(file, limits.bytes, diagnostics, pointer);
    if (!text) {
        return std::nullopt;
    }
    auto document = parse_document(*text, file, diagnostics, limits);
    auto model = document ? read_model_config(*document, diagnostics) : std::nullopt;
    if (documents != nullptr && document) {
        documents->push_back(std::move(*document));
    }
    return model;
}

}  // namespace shardplan::config
