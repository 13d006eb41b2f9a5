#include "config/job_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/job_fields.h"

namespace shardplan::config {
namespace {

using nlohmann::ordered_json;

/// `schema` with the texts that editors show for `field`.
ordered_json described(const JobField& field, const ordered_json& schema) {
    ordered_json result = ordered_json::object();
    result["description"] = field.description;
    result.update(schema);
    if (!field.default_json.empty()) {
        result["default"] = ordered_json::parse(field.default_json);
    }
    if (!field.example_json.empty()) {
        result["examples"] = ordered_json::array();
        result["examples"].push_back(ordered_json::parse(field.example_json));
    }
    return result;
}

template <typename Names>
ordered_json one_of_names(const Names& names) {
    ordered_json list = ordered_json::array();
    for (const auto& [name, value] : names) {
        list.push_back(name);
    }
    ordered_json schema;
    schema["enum"] = list;
    return schema;
}

ordered_json integer(const JobField& field) {
    return {{"type", "integer"}, {"minimum", field.lowest}, {"maximum", field.highest}};
}

/// An object that has no other keys; every object of a job may hold the two annotations.
ordered_json closed_object(const ordered_json& properties) {
    ordered_json schema;
    schema["type"] = "object";
    schema["additionalProperties"] = false;
    schema["properties"]["$schema"]["description"] = "The schema of this file, for editors; ignored.";
    schema["properties"]["$comment"]["description"] = "Ignored.";
    schema["properties"].update(properties);
    return schema;
}

template <typename... Schemas>
ordered_json alternatives(const Schemas&... schemas) {
    ordered_json schema;
    schema["anyOf"] = ordered_json::array();
    (schema["anyOf"].push_back(schemas), ...);
    return schema;
}

ordered_json reference(std::string_view definition) {
    ordered_json schema;
    schema["$ref"] = fmt::format("#/definitions/{}", definition);
    return schema;
}

ordered_json object_of(std::initializer_list<std::pair<JobField, ordered_json>> members) {
    ordered_json properties = ordered_json::object();
    for (const auto& [field, schema] : members) {
        properties[std::string(field.name)] = described(field, schema);
    }
    return closed_object(properties);
}

ordered_json mesh_schema() {
    ordered_json axes;
    axes["type"] = "object";
    axes["propertyNames"]["maxLength"] = fields::longest_axis_name;
    axes["properties"]["$schema"] = ordered_json::object();
    axes["properties"]["$comment"] = ordered_json::object();
    ordered_json wildcard;
    wildcard["const"] = -1;
    JobField size = fields::axes;
    size.lowest = 1;
    axes["additionalProperties"] = alternatives(integer(size), wildcard);
    ordered_json schema = object_of({{fields::axes, axes}, {fields::devices, integer(fields::devices)}});
    schema["required"] = {"axes"};
    return schema;
}

ordered_json axis_name() {
    return {{"type", "string"}, {"minLength", 1}};
}

/// null, "tp" or ["fsdp", "dp"].
ordered_json entry_schema() {
    ordered_json none;
    none["type"] = "null";
    ordered_json several;
    several["type"] = "array";
    several["items"] = axis_name();
    return alternatives(none, axis_name(), several);
}

ordered_json partition_axis_schema(partition::Compat compat) {
    ordered_json properties = ordered_json::object();
    for (const partition::FieldInfo& info : partition::PartitionAxis::fields(compat)) {
        ordered_json& field = properties[std::string(info.name)];
        // A sentence names the field that the default comes from.
        const bool literal = ordered_json::accept(info.default_text);
        field["description"] = literal ? std::string(info.description)
                                       : fmt::format("{}; default: {}", info.description, info.default_text);
        field["allOf"] = ordered_json::array();
        field["allOf"].push_back(reference("entry"));
        if (literal) {
            field["default"] = ordered_json::parse(info.default_text);
        }
    }
    return closed_object(properties);
}

ordered_json rules_schema() {
    ordered_json pattern;
    pattern["type"] = "string";
    ordered_json spec;
    spec["type"] = "array";
    spec["items"] = reference("entry");
    ordered_json rule;
    rule["type"] = "array";
    rule["items"] = ordered_json::array();
    rule["items"].push_back(pattern);
    rule["items"].push_back(spec);
    rule["minItems"] = 2;
    rule["maxItems"] = 2;
    ordered_json list;
    list["type"] = "array";
    list["items"] = rule;
    list["maxItems"] = fields::most_rules;
    return alternatives(one_of_names(names::rule_sources), list);
}

ordered_json model_schema() {
    ordered_json path;
    path["type"] = "string";
    path["minLength"] = 1;
    ordered_json config;
    config["type"] = "object";
    return alternatives(path, config);
}

ordered_json workload_schema() {
    return object_of({{fields::mode, one_of_names(names::modes)},
                      {fields::batch_size, integer(fields::batch_size)},
                      {fields::sequence_length, integer(fields::sequence_length)},
                      {fields::cache_length, integer(fields::cache_length)},
                      {fields::chunk_length, integer(fields::chunk_length)},
                      {fields::insert_length, integer(fields::insert_length)},
                      {fields::micro_batches, integer(fields::micro_batches)},
                      {fields::dtype, one_of_names(names::dtypes)}});
}

ordered_json memory_schema() {
    ordered_json text;
    text["type"] = "string";
    text["pattern"] = R"(^[0-9]+(\.[0-9]+)? *([KMGT]i?)?B$)";
    ordered_json list;  // how many it needs only the reader knows
    list["type"] = "array";
    list["minItems"] = 1;
    list["items"] = alternatives(integer(fields::device_memory), text);
    return alternatives(integer(fields::device_memory), text, list);
}

ordered_json pipeline_schema() {
    ordered_json name;
    name["type"] = "string";
    ordered_json flag;
    flag["type"] = "boolean";
    ordered_json layers;
    layers["type"] = "array";
    layers["minItems"] = 1;
    layers["items"]["type"] = "integer";
    layers["items"]["minimum"] = 1;
    return object_of({{fields::pipeline_axis, name},
                      {fields::pipeline_layers, layers},
                      {fields::account_for_embedding, flag},
                      {fields::account_for_loss, flag},
                      {fields::remainder, one_of_names(names::remainders)},
                      {fields::virtual_stages, integer(fields::virtual_stages)}});
}

ordered_json options_schema() {
    ordered_json boolean;
    boolean["type"] = "boolean";
    return object_of({{fields::indivisible, one_of_names(names::indivisible)},
                      {fields::padded_vocab_size, integer(fields::padded_vocab_size)},
                      {fields::kv_heads, one_of_names(names::kv_heads)},
                      {fields::compat, one_of_names(names::compat)},
                      {fields::cp_comm_type, one_of_names(names::cp_comm_types)},
                      {fields::context_parallel_load_balance, boolean}});
}

/// options.compat decides which fields partition_axis has.
ordered_json dialects() {
    ordered_json current;
    current["properties"]["options"]["properties"]["compat"]["const"] = "current";
    current["properties"]["options"]["required"] = {"compat"};
    current["required"] = {"options"};
    ordered_json choice;
    choice["if"] = current;
    choice["then"]["properties"]["partition_axis"] = reference("current_partition_axis");
    choice["else"]["properties"]["partition_axis"] = reference("seed_partition_axis");
    return choice;
}

}  // namespace

std::string job_schema() {
    const ordered_json provider = one_of_names(names::providers);
    const ordered_json flag = {{"type", "boolean"}};
    const ordered_json backend =
        alternatives(provider, object_of({{fields::provider, provider},
                                          {fields::token_dispatcher, one_of_names(names::token_dispatchers)},
                                          {fields::grouped_gemm, flag},
                                          {fields::legacy_grouped_gemm, flag},
                                          {fields::weight_dtype, one_of_names(names::weight_dtypes)}}));
    ordered_json open;
    open["type"] = "object";
    const ordered_json job = object_of({{fields::model, model_schema()},
                                        {fields::mesh, mesh_schema()},
                                        {fields::partition_axis, open},
                                        {fields::partition_rules, rules_schema()},
                                        {fields::backend, backend},
                                        {fields::workload, workload_schema()},
                                        {fields::options, options_schema()},
                                        {fields::pipeline, pipeline_schema()},
                                        {fields::device_memory, memory_schema()}});
    ordered_json schema;
    schema["$schema"] = "http://json-schema.org/draft-07/schema#";
    schema["title"] = "shardplan job";
    schema["description"] = "A model, a mesh, and how the one is cut over the other.";
    schema.update(job);
    schema["required"] = {"model", "mesh"};
    schema["allOf"] = ordered_json::array();
    schema["allOf"].push_back(dialects());
    schema["definitions"]["entry"] = entry_schema();
    schema["definitions"]["seed_partition_axis"] = partition_axis_schema(partition::Compat::seed);
    schema["definitions"]["current_partition_axis"] = partition_axis_schema(partition::Compat::current);
    return schema.dump(2) + "\n";
}

}  // namespace shardplan::config
