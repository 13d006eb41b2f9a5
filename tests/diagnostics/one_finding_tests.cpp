// One cause, one finding: key/value heads that do not suit their axes are reported once, whatever else they cut.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diagnostics/checked_job.h"

using namespace diagnostics_tests;

namespace {

std::string job_with(std::int64_t heads, std::int64_t kv_heads, const std::string& mesh, const std::string& fields,
                     const std::string& options, const std::string& mode) {
    return fmt::format(
        R"({{"model": {{"model_type": "llama", "hidden_size": 768, "head_dim": 32, "num_hidden_layers": 1,
            "intermediate_size": 80640, "vocab_size": 80640, "num_attention_heads": {}, "num_key_value_heads": {}}},
            "mesh": {{"axes": {{{}}}}}, "partition_axis": {{"hidden_state_axis": null{}}}, "options": {{{}}},
            "workload": {{"mode": "{}", "batch_size": 48, "sequence_length": 48}}}})",
        heads, kv_heads, mesh, fields, options, mode);
}

int about_kv_heads(const diag::Diagnostics& diagnostics) {
    int count = 0;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        const bool counts = d.severity != diag::Severity::note;
        count += counts && d.message.find("num_key_value_heads") != std::string::npos ? 1 : 0;
    }
    return count;
}

}  // namespace

TEST_CASE("key/value heads have at most one finding") {
    struct Mesh {
        const char* axes;
        const char* fields;
    };
    const Mesh meshes[] = {{R"("tp": 3)", ""},
                           {R"("tp": 6)", ""},
                           {R"("tp": 12)", ""},
                           {R"("tp": 16)", ""},
                           {R"("a": 2, "b": 3)", R"(, "head_axis": ["a", "b"])"},
                           {R"("a": 4, "b": 3)", R"(, "head_axis": ["a", "b"])"},
                           {R"("a": 4, "b": 3)", R"(, "head_axis": ["a", "b"], "kv_head_axis": "b")"}};
    int reported = 0;
    for (const auto& [heads, kv_heads] : {std::pair{24, 4}, {24, 8}, {24, 6}, {12, 4}, {48, 3}, {48, 16}}) {
        for (const Mesh& mesh : meshes) {
            for (const char* options : {"", R"("kv_heads": "split")", R"("indivisible": "drop")"}) {
                for (const char* mode : {"prefill", "decode"}) {
                    const std::string job = job_with(heads, kv_heads, mesh.axes, mesh.fields, options, mode);
                    CAPTURE(job);
                    const CheckedJob result = check_text(job, "job.json", {}, false);
                    INFO(text_of(result.checked));
                    CHECK(about_kv_heads(result.checked) <= 1);
                    reported += about_kv_heads(result.checked);
                }
            }
        }
    }
    CHECK(reported > 100);
}
