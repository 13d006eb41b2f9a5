#include "config/job_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/job_fields.h"
#include "config/known_elsewhere.h"
#include "config/object_reader.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

std::optional<std::int64_t> integer(const ObjectReader& reader, const JobField& field) {
    return reader.integer(field.name, field.lowest, field.highest);
}

/// The value of a string among `choices`; SP1008.
template <typename Value>
std::optional<Value> one_of(const ConfigValue& value, std::span<const Choice<Value>> choices,
                            diag::Diagnostics& diagnostics) {
    std::vector<std::string> known;
    for (const auto& [name, meaning] : choices) {
        if (*value.string() == name) {
            return meaning;
        }
        known.emplace_back(name);
    }
    report_name(value, known, diagnostics);
    return std::nullopt;
}

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

}  // namespace

std::vector<std::string> keys_of(std::span<const JobField> fields) {
    std::vector<std::string> keys;
    for (const JobField& field : fields) {
        keys.emplace_back(field.name);
    }
    return keys;
}

void read_mesh(const ConfigValue& value, const Overrides& overrides, plan::Job& job, diag::Diagnostics& diagnostics) {
    const std::size_t errors_before = diagnostics.error_count();
    const ObjectReader reader(value, keys_of(fields::mesh_fields), diagnostics);
    std::optional<std::int64_t> devices = integer(reader, fields::devices);
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
        if (name.size() > fields::longest_axis_name) {
            diagnostics.report("SP3001",
                               fmt::format("the name of a mesh axis has {} bytes, the limit is {}", name.size(),
                                           fields::longest_axis_name),
                               size_value.pointer);
        }
        // make_mesh knows -1 and refuses what is less than 1
        const bool low = size_value.integer() != nullptr && *size_value.integer() < 1;
        const auto size =
            low ? std::optional(*size_value.integer()) : read_integer(size_value, 1, fields::axes.highest, diagnostics);
        axes.push_back({name, size.value_or(1)});
        wildcard = wildcard || size == -1;
    }
    if (diagnostics.error_count() > errors_before) {
        return;
    }
    if (overrides.ranks && (overrides.ranks_decide || (!devices && wildcard))) {
        devices = overrides.ranks;
    }
    if (auto made = mesh::make_mesh(axes, devices, "/mesh/axes", diagnostics)) {
        job.mesh = std::move(*made);
    }
}

/// What says how even stages are dealt out has no say where each stage has a number (Megatron-Core refuses it too).
void refuse_beside_layers(const ObjectReader& reader, diag::Diagnostics& diagnostics) {
    for (const auto& field : {fields::account_for_embedding, fields::account_for_loss, fields::remainder}) {
        const ConfigValue* other = reader.find(field.name);
        if (other != nullptr && (other->boolean() == nullptr || *other->boolean())) {
            diagnostics.report(
                "SP3005",
                fmt::format("{} is for even stages, but pipeline.layers says how many layers each has", field.name),
                other->pointer, "leave one of the two out");
        }
    }
}

void read_pipeline(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ObjectReader reader(value, keys_of(fields::pipeline_fields), diagnostics);
    plan::Pipeline pipeline;
    if (const std::string* axis = reader.text("axis")) {
        pipeline.axis = *axis;
    }
    pipeline.account_for_embedding = reader.flag("account_for_embedding").value_or(false);
    pipeline.account_for_loss = reader.flag("account_for_loss").value_or(false);
    pipeline.remainder_last = reader.choice<bool>("remainder", names::remainders).value_or(false);
    if (const std::int64_t runs = integer(reader, fields::virtual_stages).value_or(1); runs > 1) {
        diagnostics.report("SP3005",
                           fmt::format("interleaved stages are not supported: {} {} asks for {} runs of layers on each "
                                       "device",
                                       fields::virtual_stages.name, runs, runs),
                           reader.find(fields::virtual_stages.name)->pointer,
                           "leave it out: each device then holds one run of neighbouring layers");
    }
    if (const ConfigValue* layers = reader.find("layers")) {
        if (layers->array() == nullptr) {
            report_type(*layers, "a list with the layers of each stage", diagnostics);
            return;
        }
        refuse_beside_layers(reader, diagnostics);
        if (layers->array()->empty()) {
            diagnostics.report("SP1006", "pipeline.layers is empty, it needs a number for each stage", layers->pointer,
                               "leave it out for even stages");
            return;
        }
        for (const ConfigValue& count : *layers->array()) {
            pipeline.layers.push_back(read_integer(count, 1, fields::most_stage_layers, diagnostics).value_or(1));
        }
    }
    job.pipeline = std::move(pipeline);
}

void read_options(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ObjectReader reader(value, keys_of(fields::options_fields), diagnostics);
    plan::Options& options = job.options;
    options.indivisible =
        reader.choice<plan::Indivisible>("indivisible", names::indivisible).value_or(options.indivisible);
    options.padded_vocab_size = integer(reader, fields::padded_vocab_size).value_or(options.padded_vocab_size);
    options.kv_heads = reader.choice<plan::KvHeads>("kv_heads", names::kv_heads).value_or(options.kv_heads);
    const ConfigValue* way = reader.find("cp_comm_type");
    if (way != nullptr && way->array() != nullptr) {  // Megatron takes one for each layer
        diagnostics.report("SP1005", "options.cp_comm_type must be one name, which holds for all layers, not an array",
                           way->pointer, R"(write one of "auto", "p2p", "a2a", "all_gather")");
    } else {
        options.cp_comm_type =
            reader.choice<plan::CpCommType>("cp_comm_type", names::cp_comm_types).value_or(options.cp_comm_type);
    }
    options.context_parallel_load_balance =
        reader.flag(fields::context_parallel_load_balance.name).value_or(options.context_parallel_load_balance);
    options.compat = reader.choice<partition::Compat>("compat", names::compat).value_or(options.compat);
}

/// "generation_X" for "decode_X" and the other way round; "" for other fields.
std::string counterpart(std::string_view field) {
    for (const auto& [one, other] :
         {std::pair<std::string_view, std::string_view>{"generation_", "decode_"}, {"decode_", "generation_"}}) {
        if (field.starts_with(one)) {
            return fmt::format("{}{}", other, field.substr(one.size()));
        }
    }
    return "";
}

/// Fields that only the other dialect has; they join `keys`, so that they are not reported again.
void report_other_dialect(const ConfigValue& value, partition::Compat compat, std::vector<std::string>& keys,
                          diag::Diagnostics& diagnostics) {
    const bool seed = compat == partition::Compat::seed;
    for (const std::string& name : field_names(seed ? partition::Compat::current : partition::Compat::seed)) {
        const ConfigValue* field = value.find(name);
        if (field != nullptr && std::find(keys.begin(), keys.end(), name) == keys.end()) {
            const std::string here = counterpart(name);
            const bool has_counterpart = std::find(keys.begin(), keys.end(), here) != keys.end();
            diagnostics.report(
                "SP1004",
                fmt::format("{} has no key '{}' with options.compat {}", dotted(value.pointer), name,
                            seed ? "seed" : "current"),
                field->pointer,
                fmt::format("{}set options.compat to {}", has_counterpart ? fmt::format("write {}, or ", here) : "",
                            seed ? "current" : "seed"));
            keys.push_back(name);
        }
    }
}

void read_partition_axis(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const std::vector<std::string> names = field_names(job.options.compat);
    std::vector<std::string> keys = names;
    report_other_dialect(value, job.options.compat, keys, diagnostics);
    const ObjectReader reader(value, keys, diagnostics);
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
        job.rule_source =
            one_of<partition::RuleSource>(value, names::rule_sources, diagnostics).value_or(job.rule_source);
        return;
    }
    if (value.array() == nullptr) {
        report_type(value, "the name of a preset or a list of pairs [regular expression, spec]", diagnostics);
        return;
    }
    job.rule_source = partition::RuleSource::custom;
    if (value.array()->size() > fields::most_rules) {
        diagnostics.report(
            "SP1009",
            fmt::format("partition_rules has {} rules, the limit is {}", value.array()->size(), fields::most_rules),
            value.pointer);
        return;
    }
    for (const ConfigValue& item : *value.array()) {
        if (auto rule = read_rule(item, diagnostics)) {
            job.custom_rules.push_back(std::move(*rule));
        }
    }
}

void read_backend(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ConfigValue* provider = &value;
    if (value.string() == nullptr) {
        const ObjectReader reader(value, keys_of(fields::backend_fields), diagnostics);
        provider = reader.text("provider") != nullptr ? reader.find("provider") : nullptr;
        job.dispatcher = reader.choice<plan::TokenDispatcher>(fields::token_dispatcher.name, names::token_dispatchers)
                             .value_or(job.dispatcher);
        job.experts.use_grouped_gemm = reader.flag(fields::grouped_gemm.name);
        job.int8_weights =
            reader.choice<bool>(fields::weight_dtype.name, names::weight_dtypes).value_or(job.int8_weights);
        job.experts.use_legacy_grouped_gemm = reader.flag(fields::legacy_grouped_gemm.name).value_or(false);
    }
    if (provider == nullptr) {
        return;
    }
    job.provider = one_of<backend::ProviderChoice>(*provider, names::providers, diagnostics).value_or(job.provider);
}

void read_workload(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ObjectReader reader(value, keys_of(fields::workload_fields), diagnostics);
    model::Workload& workload = job.workload;
    const ConfigValue* mode = reader.find("mode");
    if (mode != nullptr && mode->string() != nullptr && (*mode->string() == "train" || *mode->string() == "training")) {
        diagnostics.report("SP1011", fmt::format("workload.mode \"{}\": {}", *mode->string(), training().what),
                           mode->pointer, std::string(training().hint));
    } else {
        workload.mode = reader.choice<model::Mode>("mode", names::modes).value_or(workload.mode);
    }
    workload.batch_size = integer(reader, fields::batch_size).value_or(workload.batch_size);
    workload.sequence_length = integer(reader, fields::sequence_length).value_or(workload.sequence_length);
    workload.cache_length = integer(reader, fields::cache_length).value_or(workload.cache_length);
    workload.chunk_length = integer(reader, fields::chunk_length).value_or(workload.chunk_length);
    const auto insert_length = integer(reader, fields::insert_length);
    workload.insert_length = insert_length.value_or(workload.insert_length);
    if (insert_length && workload.mode != model::Mode::insert) {
        diagnostics.report("SP6002", fmt::format("insert_length is of mode insert, not {}", to_string(workload.mode)),
                           "/workload/insert_length", "leave insert_length out, or set mode to \"insert\"");
    }
    workload.micro_batches = integer(reader, fields::micro_batches).value_or(workload.micro_batches);
    workload.dtype = reader.choice<tensor::DType>("dtype", names::dtypes).value_or(workload.dtype);
}

}  // namespace shardplan::config
