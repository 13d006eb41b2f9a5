#include "config/job_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "config/file.h"
#include "config/job_fields.h"
#include "config/job_sections.h"
#include "config/json_kind.h"
#include "config/model_file.h"
#include "config/model_inline.h"
#include "config/object_reader.h"
#include "config/python_numbers.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

/// Makes {"model": root} of a bare model. The pointers below stay those of the file.
void wrap_model(Document& document) {
    ConfigValue::Object job;
    job.emplace_back("model", std::move(document.root));
    document.root = ConfigValue{std::move(job), ""};
}

std::optional<model::ModelSpec> read_model_section(const ConfigValue& value, const std::string& directory,
                                                   diag::Diagnostics& diagnostics, std::vector<Document>* documents) {
    if (value.is_object()) {
        return model::read_model(value, diagnostics);
    }
    if (value.string() == nullptr || value.string()->empty()) {
        report_type(value, "the path of a config.json or the config itself", diagnostics);
        return std::nullopt;
    }
    return read_model_config(model_path(*value.string(), directory), diagnostics, value.pointer, documents);
}

/// Keeps the first `count` layers.
void limit_layers(model::ModelSpec& model, std::int64_t count, diag::Diagnostics& diagnostics) {
    if (count >= 1 && count <= model.layer_count()) {
        model.layers.resize(static_cast<std::size_t>(count));
        return;
    }
    diagnostics.report("SP6002", fmt::format("--layers must lie in 1 ... {}, the layers of the model, not {}",
                                             model.layer_count(), count));
    diagnostics.all().back().span = span_of({"<--layers>", std::to_string(count)}, {0, std::to_string(count).size()});
}

tensor::DType default_dtype(const model::ModelSpec& model) {
    return model.stored_dtype == tensor::DType::f32 ? tensor::DType::f32 : tensor::DType::bf16;
}

/// The file's name without ".json"; of a config.json the name of its directory.
std::string job_name(const JobSource& source, const model::ModelSpec& model) {
    const std::filesystem::path path(source.name);
    std::string name = path.filename() == "config.json" ? path.parent_path().filename().string() : path.stem().string();
    return name.empty() || source.name.starts_with('<') ? model.model_type : name;
}

/// --generate: a step per token, and a cache for all but the last, which is never fed. Prompts that are shorter than
/// sequence_length leave their room to it.
void plan_generation(plan::Job& job, std::int64_t count, std::optional<std::int64_t> longest_prompt) {
    model::Workload& workload = job.workload;
    workload.mode = model::Mode::decode;
    workload.chunk_length = 0;
    workload.micro_batches = 1;
    const std::int64_t spare = workload.sequence_length - longest_prompt.value_or(workload.sequence_length);
    workload.steps_ahead = std::max<std::int64_t>(count - 1 - std::max<std::int64_t>(spare, 0), 1);
}

void read_sections(const ObjectReader& reader, plan::Job& job, diag::Diagnostics& diagnostics) {
    const auto section = [&](std::string_view key, auto read) {
        if (const ConfigValue* value = reader.find(key)) {
            read(*value, job, diagnostics);
        }
    };
    section("options", read_options);
    job.partition_axis = partition::PartitionAxis(job.options.compat);
    section("partition_axis", read_partition_axis);
    section("partition_rules", read_partition_rules);
    section("backend", read_backend);
    section("workload", read_workload);
    section("pipeline", read_pipeline);
    section("device_memory", read_device_memory);
}

void report_foreign(diag::Diagnostics& diagnostics) {
    diagnostics.report(
        "SP2001",
        "this is neither a job (no key \"model\", \"mesh\", \"workload\" ...) nor a Hugging Face config (no "
        "\"model_type\", \"architectures\", \"hidden_size\", \"num_hidden_layers\" ...)",
        "", "a job names a model and a mesh; the model is a Hugging Face config.json, with its field names");
}

void read_root(const ConfigValue& root, const JobSource& source, const Overrides& overrides, plan::Job& job,
               diag::Diagnostics& diagnostics, std::vector<Document>* documents) {
    const ObjectReader reader(root, keys_of(fields::job), diagnostics);
    const ConfigValue* model_value = reader.require("model", R"(e.g. "model": "models/llama-3.1-8b.json")");
    if (model_value != nullptr) {
        if (auto model = read_model_section(*model_value, source.directory, diagnostics, documents)) {
            job.model = std::move(*model);
            job.workload.dtype = default_dtype(job.model);
            job.name = job_name(source, job.model);
            if (overrides.layers) {
                limit_layers(job.model, *overrides.layers, diagnostics);
            }
        }
    }
    if (const ConfigValue* mesh = reader.require("mesh", "add a mesh, or give --mesh dp=1,tp=4")) {
        read_mesh(*mesh, overrides, job, diagnostics);
    }
    read_sections(reader, job, diagnostics);
    if (overrides.generate) {
        plan_generation(job, *overrides.generate, overrides.longest_prompt);
    }
}

}  // namespace

std::optional<JobSource> open_job(const std::string& path, diag::Diagnostics& diagnostics,
                                  const std::string& stdin_name) {
    const std::string file = config_in_directory(path);
    auto text = read_file(file, Limits{}.bytes, diagnostics);
    if (!text) {
        return std::nullopt;
    }
    if (path == "-") {
        return JobSource{stdin_name, std::move(*text), ""};
    }
    return JobSource{file, std::move(*text), std::filesystem::path(file).parent_path().string()};
}

std::optional<plan::Job> read_job(const JobSource& source, const Overrides& overrides, diag::Diagnostics& diagnostics,
                                  std::vector<Document>* documents) {
    Limits limits;
    limits.values = fields::most_values;
    limits.python_numbers = true;
    auto document = parse_document(source.text, source.name, diagnostics, limits);
    if (!document) {
        return std::nullopt;
    }
    diag::Diagnostics found;
    const bool bare = is_bare_model(document->root);
    report_python_numbers(*document, bare ? "" : "/model", found);
    if (bare) {
        wrap_model(*document);
    }
    plan::Job job;
    std::vector<Document> model_files;
    if (!document->root.is_object()) {
        report_type(document->root, "an object", found);
    } else if (is_foreign(document->root)) {
        report_foreign(found);
    } else if (!found.has_errors()) {
        const Overrides usable = inline_model(*document, source.directory, overrides, found);
        apply_overrides(*document, usable, found);
        read_root(document->root, source, usable, job, found, &model_files);
    }
    attach_spans(found, *document);
    for (const diag::Diagnostic& diagnostic : found.all()) {
        diagnostics.add(diagnostic);
    }
    if (documents != nullptr) {
        documents->push_back(std::move(*document));
        std::move(model_files.begin(), model_files.end(), std::back_inserter(*documents));
    }
    return found.has_errors() ? std::nullopt : std::optional(std::move(job));
}

}  // namespace shardplan::config
