#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "config/assignment.h"
#include "config/job_fields.h"
#include "config/object_reader.h"
#include "mesh/mesh.h"
#include "model/text_part.h"

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

std::string_view first_key(std::string_view path) {
    return path.substr(0, path.find('.'));
}

bool is_job_key(std::string_view key) {
    return std::any_of(fields::job.begin(), fields::job.end(),
                       [&](const JobField& field) { return field.name == key; });
}

/// The path as the document has it. A config that holds its decoder in an object of its own is changed there, unless
/// only the whole has the key; a key of the model that is no key of a job needs no "model." before it.
std::string path_in(const Document& document, std::string_view written) {
    const ConfigValue* model = document.root.find("model");
    if (model == nullptr || !model->is_object()) {
        return std::string(written);
    }
    const std::string nested(model::text_part_key(*model));
    const ConfigValue* decoder = nested.empty() ? nullptr : model->find(nested);
    const auto of_decoder = [&](std::string_view key) { return decoder != nullptr && decoder->find(key) != nullptr; };
    const std::string_view first = first_key(written);
    std::string path(written);
    if (first != "model" && !is_job_key(first) && (model->find(first) != nullptr || of_decoder(first))) {
        path.insert(0, "model.");
    }
    constexpr std::string_view prefix = "model.";
    if (!path.starts_with(prefix) || decoder == nullptr) {
        return path;
    }
    const std::string_view key = first_key(std::string_view(path).substr(prefix.size()));
    if (key != nested && (of_decoder(key) || model->find(key) == nullptr)) {
        path.insert(prefix.size(), nested + ".");
    }
    return path;
}

std::string_view key_text(const Option& option) {
    return std::string_view(option.text).substr(option.key.begin, option.key.end - option.key.begin);
}

/// The value that a dotted path names, created with the objects around it; nullptr after a diagnostic.
/// @pre every key of the path has a name
ConfigValue* resolve(Document& document, const Option& option, std::size_t source, diag::Diagnostics& diagnostics) {
    const std::string whole = path_in(document, key_text(option));
    std::string_view path = whole;
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

/// Text that begins as JSON must be JSON; then the option is left out, so that nothing follows from it.
bool check_syntax(const Option& option, diag::Diagnostics& diagnostics) {
    const std::string_view text = std::string_view(option.text).substr(option.value.begin);
    if (!begins_as_json(text)) {
        return true;
    }
    // Blanks in place of "key=", one for each code point: the columns are those of the option.
    const std::string_view before = std::string_view(option.text).substr(0, option.value.begin);
    const auto columns = std::count_if(before.begin(), before.end(),
                                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
    std::string pointer = "/" + std::string(key_text(option));
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    diag::Diagnostics problems;
    if (parse_document(std::string(static_cast<std::size_t>(columns), ' ').append(text), option.name, problems, {},
                       pointer)) {
        return true;
    }
    for (const diag::Diagnostic& problem : problems.all()) {
        diagnostics.add(problem);
    }
    return false;
}

/// Parses the value of `option` into `target`; text that is no JSON is a string.
/// @pre check_syntax
void assign(Document& document, ConfigValue& target, const Option& option, std::size_t source) {
    const std::string_view text = std::string_view(option.text).substr(option.value.begin);
    const std::string pointer = target.pointer;
    forget(document, pointer);
    document.locations[pointer] = {source, option.key, option.value};
    diag::Diagnostics ignored;
    auto parsed = parse_document(text, option.name, ignored, {}, pointer);
    if (!parsed) {
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
    if (!check_syntax(option, diagnostics)) {
        return;
    }
    if (ConfigValue* target = resolve(document, option, source, diagnostics)) {
        assign(document, *target, option, source);
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
        if (is_annotation(axis.name)) {
            diagnostics.report("SP3001", fmt::format("'{}' is the name of a comment, not of a mesh axis", axis.name),
                               pointer, "name the axis otherwise");
        }
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

bool is_assignment(std::string_view text) {
    const std::size_t equals = text.find('=');
    return equals != std::string_view::npos && is_path(text.substr(0, equals));
}

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
        if (!is_assignment(text)) {
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
