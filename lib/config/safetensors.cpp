#include "config/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "config/document.h"
#include "config/file.h"
#include "config/safetensors_file.h"

namespace shardplan::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view single_file = "model.safetensors";
constexpr std::string_view index_file = "model.safetensors.index.json";

void report(diag::Diagnostics& diagnostics, std::string message, std::string hint = "") {
    diagnostics.report("SP7001", std::move(message), "", std::move(hint));
}

/// The weight_map of an index: tensor name -> file name. Empty after a diagnostic.
std::map<std::string, std::string> read_weight_map(const std::string& path, diag::Diagnostics& diagnostics) {
    std::map<std::string, std::string> result;
    const Limits limits;
    const auto text = read_file(path, limits.bytes, diagnostics);
    const auto document = text ? parse_document(*text, path, diagnostics, limits) : std::nullopt;
    if (!document) {
        return result;
    }
    const model::ConfigValue* map = document->root.find("weight_map");
    if (map == nullptr || map->object() == nullptr || map->object()->empty()) {
        report(diagnostics, fmt::format("{}: weight_map must be an object of tensor names and files", path));
        return result;
    }
    for (const auto& [tensor, file] : *map->object()) {
        const bool plain = file.string() != nullptr && fs::path(*file.string()).filename() == *file.string();
        if (!plain || !file.string()->ends_with(".safetensors")) {
            report(diagnostics,
                   fmt::format("{}: the file of '{}' must be the name of a .safetensors file beside the index", path,
                               tensor));
            return {};
        }
        result.emplace(tensor, *file.string());
    }
    return result;
}

/// SP7003 for model*.safetensors beside an index that does not name them.
void report_strays(const fs::path& directory, const std::set<std::string>& indexed, diag::Diagnostics& diagnostics) {
    std::set<std::string> strays;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory.empty() ? "." : directory, failed)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("model") && name.ends_with(".safetensors") && !indexed.contains(name)) {
            strays.insert(name);
        }
    }
    for (const std::string& name : strays) {
        diagnostics.report("SP7003", fmt::format("{} is not in the index, ignored", (directory / name).string()), "",
                           "remove it, or name it with --weights when it is the one that is meant");
    }
}

void read_index(const std::string& path, tensor::Checkpoint& checkpoint, diag::Diagnostics& diagnostics) {
    const auto weight_map = read_weight_map(path, diagnostics);
    std::set<std::string> files;
    for (const auto& [tensor, file] : weight_map) {
        files.insert(file);
    }
    const std::size_t errors_before = diagnostics.error_count();
    const fs::path directory = fs::path(path).parent_path();
    for (const std::string& file : files) {
        read_safetensors_file((directory / file).string(), checkpoint, diagnostics);
    }
    if (diagnostics.error_count() > errors_before) {
        return;
    }
    report_strays(directory, files, diagnostics);
    for (const auto& [tensor, file] : weight_map) {
        const auto entry = checkpoint.find(tensor);
        if (entry == checkpoint.end() || fs::path(entry->second.file).filename() != file) {
            report(diagnostics, fmt::format("{}: tensor '{}' is not in {}", path, tensor, file));
        }
    }
}

/// The file to read in `directory`, or "" after a diagnostic.
std::string find_in_directory(const std::string& directory, diag::Diagnostics& diagnostics) {
    std::error_code ignored;
    for (const std::string_view name : {index_file, single_file}) {  // where there is an index, it decides
        const fs::path file = fs::path(directory) / name;
        if (fs::exists(file, ignored)) {
            return file.string();
        }
    }
    const bool pickled = fs::exists(fs::path(directory) / "pytorch_model.bin", ignored) ||
                         fs::exists(fs::path(directory) / "pytorch_model.bin.index.json", ignored);
    report(diagnostics, fmt::format("{} has neither {} nor {}", directory, single_file, index_file),
           pickled ? "pytorch_model.bin cannot be read; convert it to safetensors" : "");
    return "";
}

}  // namespace

std::optional<tensor::Checkpoint> read_checkpoint(const std::string& path, diag::Diagnostics& diagnostics) {
    std::error_code ignored;
    const std::size_t errors_before = diagnostics.error_count();
    const std::string file = fs::is_directory(path, ignored) ? find_in_directory(path, diagnostics) : path;
    tensor::Checkpoint checkpoint;
    if (file.ends_with(".json")) {
        read_index(file, checkpoint, diagnostics);
    } else if (!file.empty()) {
        read_safetensors_file(file, checkpoint, diagnostics);
    }
    return diagnostics.error_count() > errors_before ? std::nullopt : std::optional(std::move(checkpoint));
}

std::string safetensors_header(const std::vector<HeaderEntry>& entries) {
    std::string text = "{";
    std::int64_t offset = 0;
    for (const HeaderEntry& entry : entries) {
        const std::int64_t end = base::checked_add(offset, tensor::byte_count(entry.shape, entry.dtype));
        text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", text.size() > 1 ? "," : "",
                            nlohmann::json(entry.name).dump(), tensor::safetensors_name(entry.dtype),
                            fmt::join(entry.shape, ","), offset, end);
        offset = end;
    }
    text += '}';
    text.append((8 - text.size() % 8) % 8, ' ');
    std::string result;
    for (std::size_t i = 0; i < 8; ++i) {
        result += static_cast<char>(static_cast<unsigned char>(text.size() >> (8 * i)));
    }
    return result + text;
}

}  // namespace shardplan::config
