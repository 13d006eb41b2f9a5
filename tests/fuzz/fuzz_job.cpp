// libFuzzer: any text as a job, read and planned. No input may crash, leak, overflow or take long, and none may pass
// the reader and the planner without a plan or leave them with one and an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/job_reader.h"
#include "diag/codes.h"
#include "plan/plan.h"

namespace {

using namespace shardplan;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

/// A job that names a file would read it: only configs that stand in the job are of interest.
bool names_file(std::string_view text) {
    diag::Diagnostics ignored;
    const auto document = config::parse_document(text, "job.json", ignored);
    const model::ConfigValue* model = document ? document->root.find("model") : nullptr;
    return model != nullptr && !model->is_object();
}

void check_diagnostics(const diag::Diagnostics& diagnostics, const std::vector<config::Document>& documents) {
    for (const diag::Diagnostic& diagnostic : diagnostics.all()) {
        require(diag::find_code(diagnostic.code) != nullptr);
        require(!diagnostic.message.empty());
        require(documents.empty() || diagnostic.span.has_value());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (names_file(text)) {
        return 0;
    }
    // A bare config of a model needs the mesh of the command line.
    config::Overrides overrides;
    if (text.find("\"mesh\"") == std::string_view::npos) {
        overrides.mesh = "dp=2,tp=4";
    }
    diag::Diagnostics diagnostics;
    std::vector<config::Document> documents;
    const auto job = config::read_job({"job.json", std::string(text), ""}, overrides, diagnostics, &documents);
    require(job.has_value() != diagnostics.has_errors());
    if (job) {
        const auto plan = plan::make_plan(*job, diagnostics);
        require(plan.has_value() != diagnostics.has_errors());
    }
    if (!documents.empty()) {
        config::attach_spans(diagnostics, documents.front());
    }
    check_diagnostics(diagnostics, documents);
    return 0;
}
