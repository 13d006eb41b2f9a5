#include "config/json_kind.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/spelling.h"
#include "config/document.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

constexpr std::array<std::string_view, 8> job_keys = {"model",   "mesh",     "partition_axis", "partition_rules",
                                                      "backend", "workload", "options",        "device_memory"};

bool names_schema(const ConfigValue& root) {
    const ConfigValue* schema = root.find("$schema");
    return schema != nullptr && schema->string() != nullptr && schema->string()->ends_with("shardplan.schema.json");
}

}  // namespace

bool is_bare_model(const ConfigValue& root) {
    if (root.find("model") != nullptr || root.find("mesh") != nullptr) {
        return false;
    }
    constexpr std::array<std::string_view, 7> model_keys = {
        "model_type", "architectures", "hidden_size", "n_embd", "num_hidden_layers", "vocab_size", "d_model"};
    return std::any_of(model_keys.begin(), model_keys.end(),
                       [&](std::string_view key) { return root.find(key) != nullptr; });
}

bool is_foreign(const ConfigValue& root) {
    constexpr std::size_t most_compared = 100;  // a misspelt job has few keys
    const ConfigValue::Object* object = root.object();
    if (object == nullptr || object->empty() || names_schema(root) || is_bare_model(root)) {
        return false;
    }
    const std::vector<std::string> known(job_keys.begin(), job_keys.end());
    return std::none_of(object->begin(), object->end(), [&](const auto& member) {
        const std::string& key = member.first;
        return std::find(known.begin(), known.end(), key) != known.end() ||
               (object->size() <= most_compared && !base::nearest_word(key, known).empty());
    });
}

JsonKind kind_of(std::string_view text) {
    const auto mentioned = std::count_if(job_keys.begin(), job_keys.end(), [&](std::string_view key) {
        return text.find('"' + std::string(key) + '"') != std::string_view::npos;
    });
    diag::Diagnostics ignored;
    Limits limits;
    limits.locations = false;
    limits.python_numbers = true;
    const auto document = parse_document(text, "", ignored, limits);
    if (!document) {
        return mentioned >= 2 ? JsonKind::job : JsonKind::other;
    }
    const ConfigValue& root = document->root;
    const auto present = std::count_if(job_keys.begin(), job_keys.end(),
                                       [&](std::string_view key) { return root.find(key) != nullptr; });
    if (present >= 2 || names_schema(root)) {
        return JsonKind::job;
    }
    return is_bare_model(root) ? JsonKind::model : JsonKind::other;
}

}  // namespace shardplan::config
