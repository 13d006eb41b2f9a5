#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "mesh/mesh.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

/// One option: its source in the document and what it writes.
struct Option {
    std::string name;  ///< "<--set workload.batch_size>"
    std::string text;  ///< "workload.batch_size=4"
    TextRange key;     ///< within text
    TextRange value;
};

void report(std::string_view code, std::string message, const std::string& pointer, const Option& option,
            TextRange range, diag::Diagnostics& diagnostics) {
    diagnostics.report(code, std::move(message), pointer);
    diagnostics.all().back().span = span_of({option.name, option.text}, range);
}

/// Forgets the places of the value that is replaced.
void forget(Document& document, const std::string& pointer) {
    std::erase_if(document.locations,
                  [&](const auto& entry) { return entry.first == pointer || entry.first.starts_with(pointer + "/"); });
}

/// The member `key` of `parent`, created when absent.
ConfigValue& member(ConfigValue::Object& parent, const std::string& key, const std::string& pointer) {
    const auto it = std::find_if(parent.begin(), parent.end(), [&](const auto& entry) { return entry.first == key; });
    if (it != parent.end()) {
        return it->second;
    }
    parent.emplace_back(key, ConfigValue{std::monostate{}, pointer});
    return parent.back().second;
}

/// "backend": "fused" is short for "backend": {"provider": "fused"}: the long form, for what stands beside it.
void expand_short_form(ConfigValue& value) {
    if (value.pointer == "/backend" && value.string() != nullptr) {
        ConfigValue provider{*value.string(), value.pointer};  // its place stays that of the name
        ConfigValue::Object object;
        object.emplace_back("provider", std::move(provider));
        value.data = std::move(object);
    }
}

/// The value that a dotted path names, created with the objects around it; nullptr after a diagnostic.
/// @pre every key of the path has a name
ConfigValue* resolve(Document& document, const Option& option, std::size_t source, diag::Diagnostics& diagnostics) {
    std::string_view path = std::string_view(option.text).substr(option.key.begin, option.key.end - option.key.begin);
    ConfigValue* value = &document.root;
    std::string pointer;
    while (true) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        const std::string key(path.substr(0, dot));
        if (value->is_null() && !pointer.empty()) {
            value->data = ConfigValue::Object{};
        }
        expand_short_form(*value);
        auto* object = std::get_if<ConfigValue::Object>(&value->data);
        if (object == nullptr) {
            report("SP1005",
                   fmt::format("cannot set \"{}\" in {}: that is of type {}, not an object", key,
                               pointer.empty() ? "the job" : pointer.substr(1), value->type_name()),
                   pointer, option, option.key, diagnostics);
            return nullptr;
        }
        pointer += "/" + diag::escape_pointer(key);
        value = &member(*object, key, pointer);
        if (!document.locations.contains(pointer)) {
            document.locations[pointer] = {source, option.key, option.value};
        }
        if (dot == path.size()) {
            value->pointer = pointer;
            return value;
        }
        path.remove_prefix(dot + 1);
    }
}

bool is_path(std::string_view path) {
    return !path.empty() && path.front() != '.' && path.back() != '.' && path.find("..") == std::string_view::npos;
}

bool begins_as_json(std::string_view text) {
    return !text.empty() && std::string_view("{[\"").find(text.front()) != std::string_view::npos;
}

/// Parses the value of `option` into `target`; text that is no JSON is a string.
void assign(Document& document, ConfigValue& target, const Option& option, std::size_t source,
            diag::Diagnostics& diagnostics) {
    const std::string_view text = std::string_view(option.text).substr(option.value.begin);
    const std::string pointer = target.pointer;
    forget(document, pointer);
    document.locations[pointer] = {source, option.key, option.value};
    diag::Diagnostics problems;
    auto parsed = parse_document(text, option.name, problems, {}, pointer);
    if (!parsed) {
        if (begins_as_json(text)) {
            for (const diag::Diagnostic& problem : problems.all()) {
                diagnostics.add(problem);
            }
        }
        target.data = std::string(text);
        return;
    }
    const auto moved = [&](TextRange range) {
        return TextRange{range.begin + option.value.begin, range.end + option.value.begin};
    };
    for (const auto& [below, location] : parsed->locations) {
        if (below != pointer) {
            document.locations[below] = {source, moved(location.key), moved(location.value)};
        }
    }
    target = std::move(parsed->root);
}

void apply_set(Document& document, Option option, diag::Diagnostics& diagnostics) {
    document.sources.push_back({option.name, option.text});
    const std::size_t source = document.sources.size() - 1;
    if (ConfigValue* target = resolve(document, option, source, diagnostics)) {
        assign(document, *target, option, source, diagnostics);
    }
}

struct KeptDevices {
    ConfigValue value;
    Location location;
};

/// mesh.devices of the job as it was written.
std::optional<KeptDevices> devices_of(const Document& document) {
    const ConfigValue* mesh = document.root.find("mesh");
    const ConfigValue* devices = mesh != nullptr ? mesh->find("devices") : nullptr;
    const auto location = document.locations.find("/mesh/devices");
    if (devices == nullptr || location == document.locations.end()) {
        return std::nullopt;
    }
    return KeptDevices{*devices, location->second};
}

void apply_mesh(Document& document, const std::string& text, bool keep_devices, diag::Diagnostics& diagnostics) {
    const Option option{"<--mesh>", text, {0, 0}, {0, text.size()}};
    document.sources.push_back({option.name, text});
    const std::size_t source = document.sources.size() - 1;
    auto* root = std::get_if<ConfigValue::Object>(&document.root.data);
    if (root == nullptr) {
        return;
    }
    const std::optional<KeptDevices> kept = devices_of(document);
    forget(document, "/mesh");
    ConfigValue::Object axes;
    diag::Diagnostics problems;
    std::size_t begin = 0;
    for (const mesh::Axis& axis : mesh::parse_axes(text, "/mesh", problems).value_or(std::vector<mesh::Axis>{})) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string pointer = "/mesh/axes/" + diag::escape_pointer(axis.name);
        document.locations[pointer] = {source, {}, {begin, end}};
        axes.emplace_back(axis.name, ConfigValue{axis.size, pointer});
        begin = end + 1;
    }
    for (const diag::Diagnostic& problem : problems.all()) {
        diagnostics.add(problem);
        diagnostics.all().back().span = span_of(document.sources.back(), option.value);
    }
    for (const char* pointer : {"/mesh", "/mesh/axes"}) {
        document.locations[pointer] = {source, {}, option.value};
    }
    if (axes.empty()) {  // reported above; a harmless mesh keeps the reader from reporting it again
        axes.emplace_back("dp", ConfigValue{std::int64_t{1}, "/mesh/axes/dp"});
    }
    ConfigValue::Object mesh;
    const bool filled = std::any_of(axes.begin(), axes.end(), [](const auto& axis) {
        return axis.second.integer() != nullptr && *axis.second.integer() == -1;
    });
    mesh.emplace_back("axes", ConfigValue{std::move(axes), "/mesh/axes"});
    if (filled && kept && keep_devices) {
        mesh.emplace_back("devices", kept->value);
        document.locations[kept->value.pointer] = kept->location;
    }
    member(*root, "mesh", "/mesh").data = std::move(mesh);
}

}  // namespace

bool changes_within(const Overrides& overrides, std::string_view key) {
    return std::any_of(overrides.set.begin(), overrides.set.end(), [&](std::string_view text) {
        return text.substr(0, text.find('=')).starts_with(std::string(key) + ".");
    });
}

void apply_overrides(Document& document, const Overrides& overrides, diag::Diagnostics& diagnostics) {
    if (overrides.mesh) {
        apply_mesh(document, *overrides.mesh, !overrides.ranks, diagnostics);
    }
    if (overrides.mode) {
        const std::string text = "workload.mode=" + *overrides.mode;
        apply_set(document, {"<--mode>", text, {0, 13}, {14, text.size()}}, diagnostics);
    }
    for (const std::string& text : overrides.set) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || !is_path(std::string_view(text).substr(0, equals))) {
            const Option option{fmt::format("<--set {}>", text), text, {0, text.size()}, {}};
            report("SP1004", fmt::format("\"{}\" is not key.path=value", text), "", option, option.key, diagnostics);
            diagnostics.all().back().hint = "write --set workload.batch_size=8";
            continue;
        }
        const std::string name = fmt::format("<--set {}>", text.substr(0, equals));
        apply_set(document, {name, text, {0, equals}, {equals + 1, text.size()}}, diagnostics);
    }
}

}  // namespace shardplan::config
