#include "config/job_sections.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "config/object_reader.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

template <typename Value>
using Choice = std::pair<std::string_view, Value>;

constexpr std::int64_t most_devices = std::int64_t{1} << 40;
constexpr std::int64_t most_tokens = std::int64_t{1} << 40;

/// null, "tp" or ["fsdp","dp"].
std::optional<partition::SpecEntry> read_entry(const ConfigValue& value, diag::Diagnostics& diagnostics) {
    const auto read_name = [&](const ConfigValue& name, partition::SpecEntry& entry) {
        if (name.string() == nullptr || name.string()->empty()) {
            report_type(name, "the name of a mesh axis", diagnostics);
            return false;
        }
        entry.push_back(*name.string());
        return true;
    };
    partition::SpecEntry entry;
    if (value.is_null()) {
        return entry;
    }
    if (value.string() != nullptr) {
        return read_name(value, entry) ? std::optional(entry) : std::nullopt;
    }
    if (value.array() == nullptr) {
        report_type(value, "null, the name of a mesh axis, or a list of names", diagnostics);
        return std::nullopt;
    }
    bool good = true;
    for (const ConfigValue& name : *value.array()) {
        good = read_name(name, entry) && good;
    }
    return good ? std::optional(entry) : std::nullopt;
}

std::optional<partition::ParameterRule> read_rule(const ConfigValue& value, diag::Diagnostics& diagnostics) {
    const ConfigValue::Array* pair = value.array();
    if (pair == nullptr || pair->size() != 2 || (*pair)[0].string() == nullptr || (*pair)[1].array() == nullptr) {
        report_type(value, "a pair [regular expression, [entry of each dimension, ...]]", diagnostics);
        return std::nullopt;
    }
    partition::ParameterRule rule{*(*pair)[0].string(), {}, value.pointer};
    bool good = true;
    for (const ConfigValue& dimension : *(*pair)[1].array()) {
        const auto entry = read_entry(dimension, diagnostics);
        good = entry.has_value() && good;
        rule.spec.entries.push_back(entry.value_or(partition::SpecEntry{}));
    }
    return good ? std::optional(rule) : std::nullopt;
}

std::vector<std::string> field_names(partition::Compat compat) {
    std::vector<std::string> names;
    for (const partition::FieldInfo& field : partition::PartitionAxis::fields(compat)) {
        names.emplace_back(field.name);
    }
    return names;
}

void read_rule_preset(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    static constexpr auto presets = std::to_array<Choice<partition::RuleSource>>({
        {"derived", partition::RuleSource::derived},
        {"seed-0.0.80", partition::RuleSource::seed_0_0_80},
        {"easydel-0.2", partition::RuleSource::easydel_0_2},
    });
    std::vector<std::string> names;
    for (const auto& [name, source] : presets) {
        if (*value.string() == name) {
            job.rule_source = source;
            return;
        }
        names.emplace_back(name);
    }
    report_name(value, names, diagnostics);
}

}  // namespace

void read_mesh(const ConfigValue& value, std::optional<std::int64_t> ranks, plan::Job& job,
               diag::Diagnostics& diagnostics) {
    const std::size_t errors_before = diagnostics.error_count();
    const ObjectReader reader(value, {"axes", "devices"}, diagnostics);
    std::optional<std::int64_t> devices = reader.integer("devices", 1, most_devices);
    const ConfigValue* axes_value = reader.require("axes", R"(e.g. "axes": {"dp": 1, "tp": 4})");
    if (axes_value == nullptr) {
        return;
    }
    if (axes_value->object() == nullptr) {
        report_type(*axes_value, "an object of axis names and sizes", diagnostics);
        return;
    }
    std::vector<mesh::Axis> axes;
    bool wildcard = false;
    for (const auto& [name, size_value] : *axes_value->object()) {
        if (is_annotation(name)) {
            continue;
        }
        const auto size = read_integer(size_value, -1, most_devices, diagnostics);
        axes.push_back({name, size.value_or(1)});
        wildcard = wildcard || size == -1;
    }
    if (diagnostics.error_count() > errors_before) {
        return;
    }
    if (!devices && wildcard) {
        devices = ranks;
    }
    if (auto made = mesh::make_mesh(axes, devices, "/mesh/axes", diagnostics)) {
        job.mesh = std::move(*made);
    }
}

void read_options(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    static constexpr auto indivisible = std::to_array<Choice<plan::Indivisible>>(
        {{"strict", plan::Indivisible::strict}, {"drop", plan::Indivisible::drop}});
    static constexpr auto kv_heads = std::to_array<Choice<plan::KvHeads>>(
        {{"replicate", plan::KvHeads::replicate}, {"split", plan::KvHeads::split}});
    static constexpr auto compat = std::to_array<Choice<partition::Compat>>(
        {{"seed", partition::Compat::seed}, {"current", partition::Compat::current}});
    const ObjectReader reader(value, {"indivisible", "kv_heads", "compat"}, diagnostics);
    plan::Options& options = job.options;
    options.indivisible = reader.choice<plan::Indivisible>("indivisible", indivisible).value_or(options.indivisible);
    options.kv_heads = reader.choice<plan::KvHeads>("kv_heads", kv_heads).value_or(options.kv_heads);
    options.compat = reader.choice<partition::Compat>("compat", compat).value_or(options.compat);
}

void read_partition_axis(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const std::vector<std::string> names = field_names(job.options.compat);
    const ObjectReader reader(value, names, diagnostics);
    for (const std::string& name : names) {
        const ConfigValue* field = reader.find(name);
        const auto entry = field != nullptr ? read_entry(*field, diagnostics) : std::nullopt;
        if (entry) {
            job.partition_axis.set(name, *entry, field->pointer);
        }
    }
}

void read_partition_rules(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    if (value.string() != nullptr) {
        read_rule_preset(value, job, diagnostics);
        return;
    }
    if (value.array() == nullptr) {
        report_type(value, "the name of a preset or a list of pairs [regular expression, spec]", diagnostics);
        return;
    }
    job.rule_source = partition::RuleSource::custom;
    for (const ConfigValue& item : *value.array()) {
        if (auto rule = read_rule(item, diagnostics)) {
            job.custom_rules.push_back(std::move(*rule));
        }
    }
}

void read_backend(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ConfigValue* provider = &value;
    if (value.string() == nullptr) {
        const ObjectReader reader(value, {"provider"}, diagnostics);
        provider = reader.text("provider") != nullptr ? reader.find("provider") : nullptr;
    }
    if (provider == nullptr) {
        return;
    }
    if (const auto choice = backend::parse_provider(*provider->string())) {
        job.provider = *choice;
        return;
    }
    report_name(*provider, {"auto", "local", "fused", "inference", "transformer_engine", "inference_optimized"},
                diagnostics);
}

void read_workload(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    static constexpr auto modes =
        std::to_array<Choice<model::Mode>>({{"prefill", model::Mode::prefill}, {"decode", model::Mode::decode}});
    const ObjectReader reader(value, {"mode", "batch_size", "sequence_length", "cache_length", "dtype"}, diagnostics);
    model::Workload& workload = job.workload;
    workload.mode = reader.choice<model::Mode>("mode", modes).value_or(workload.mode);
    workload.batch_size = reader.integer("batch_size", 1, most_tokens).value_or(workload.batch_size);
    workload.sequence_length = reader.integer("sequence_length", 1, most_tokens).value_or(workload.sequence_length);
    workload.cache_length = reader.integer("cache_length", 0, most_tokens).value_or(workload.cache_length);
    if (const std::string* name = reader.text("dtype")) {
        const auto dtype = tensor::parse_dtype(*name);
        if (dtype == tensor::DType::f32 || dtype == tensor::DType::bf16) {
            workload.dtype = *dtype;
        } else {
            report_name(*reader.find("dtype"), {"bf16", "f32"}, diagnostics);
        }
    }
}

}  // namespace shardplan::config
