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

constexpr std::size_t most_compared = 100;  // a misspelt job has few keys

/// A job's text that is broken, or what a download, a merge or another encoding has made of it.
bool may_be_a_job(std::string_view text) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    return start == std::string_view::npos || (text[start] != '{' && text[start] != '[') ||
           std::any_of(job_keys.begin(), job_keys.end(),
                       [&](std::string_view key) { return text.find(key) != std::string_view::npos; });
}

/// The job's keys that an object has, misspelt ones among them as long as one is right.
std::int64_t count_job_keys(const ConfigValue& root) {
    const auto present = std::count_if(job_keys.begin(), job_keys.end(),
                                       [&](std::string_view key) { return root.find(key) != nullptr; });
    if (present != 1 || root.object() == nullptr || root.object()->size() > most_compared) {
        return present;
    }
    std::vector<std::string> missing;
    for (const std::string_view key : job_keys) {
        if (root.find(key) == nullptr) {
            missing.emplace_back(key);
        }
    }
    return present + std::count_if(root.object()->begin(), root.object()->end(), [&](const auto& member) {
               return std::find(job_keys.begin(), job_keys.end(), member.first) == job_keys.end() &&
                      !base::nearest_word(member.first, missing).empty();
           });
}

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
    diag::Diagnostics ignored;
    Limits limits;
    limits.locations = false;
    limits.python_numbers = true;
    const auto document = parse_document(text, "", ignored, limits);
    if (!document) {
        return may_be_a_job(text) ? JsonKind::job : JsonKind::other;
    }
    const ConfigValue& root = document->root;
    if (count_job_keys(root) >= 2 || names_schema(root)) {
        return JsonKind::job;
    }
    return is_bare_model(root) ? JsonKind::model : JsonKind::other;
}

}  // namespace shardplan::config
