// Published configs as they are, and files as they arrive broken: one table line each (configs.tsv, configs_bad.tsv).
// A plan with a code has that warning. "later" = a plan is the right answer and the kind is not supported yet: the line
// must change when it is.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "diagnostics/checked_job.h"

using namespace diagnostics_tests;

namespace {

const std::string data = source_dir + "/tests/data/";

bool has(const diag::Diagnostics& diagnostics, const std::string& code, const std::string& fragment,
         const std::string& place = "-") {
    for (const diag::Diagnostic& d : diagnostics.all()) {
        const std::string at =
            d.span ? std::to_string(d.span->line) + ":" + std::to_string(d.span->column) : std::string();
        if ((code == "*" || d.code == code) && (fragment == "-" || d.message.find(fragment) != std::string::npos) &&
            (place == "-" || place == at)) {
            return true;
        }
    }
    return false;
}

std::set<std::string> json_files(const std::string& directory) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        if (entry.path().extension() == ".json") {
            names.insert(entry.path().stem().string());
        }
    }
    return names;
}

/// The dimensions that SP4003 and SP4007 name, in the words of DIVISIBILITY.tsv.
std::set<std::string> refused_dimensions(const diag::Diagnostics& diagnostics) {
    std::set<std::string> result;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        if (d.severity != diag::Severity::error || d.code == "SP4009") {  // the table knows of no quantisation
            continue;
        }
        const std::string dimension = d.message.substr(0, d.message.find(' '));
        result.insert(dimension == "num_attention_heads"   ? "heads"
                      : dimension == "num_key_value_heads" ? "kv"
                      : dimension == "intermediate_size"   ? "ffn"
                      : dimension == "vocab_size"          ? "vocab"
                                                           : d.message);
    }
    return result;
}

}  // namespace

TEST_CASE("every published config has its answer") {
    std::set<std::string> listed;
    for (const auto& row : read_table("configs.tsv", 6)) {
        const std::string& outcome = row[2];
        CAPTURE(row[0]);
        listed.insert(row[0]);
        const CheckedJob result = check_on(data + "configs/" + row[0] + ".json", "tp=1");
        INFO(text_of(result.checked));
        REQUIRE((outcome == "plan" || outcome == "error" || outcome == "later"));
        CHECK(result.planned.has_value() == (outcome == "plan"));
        CHECK(result.checked.has_errors() == (outcome != "plan"));
        if (row[3] != "-") {
            CHECK(has(result.checked, row[3], row[4]));
        }
        CHECK((outcome != "later" || row[5] != "-"));
    }
    CHECK(listed == json_files(data + "configs"));
}

TEST_CASE("published configs over 2 to 16 devices: exactly the dimensions that do not divide are named") {
    const std::vector<std::string> meshes = {"tp=2", "tp=3", "tp=4", "tp=6", "tp=8", "tp=16"};
    std::set<std::string> planned;
    for (const auto& row : read_table("configs.tsv", 6)) {
        if (row[2] == "plan" && row[1] == "dense-decoder") {
            planned.insert(row[0]);
        }
    }
    int compared = 0;
    for (const auto& row : read_table("../data/configs/DIVISIBILITY.tsv", 16)) {
        for (std::size_t i = 0; planned.contains(row[0]) && i < meshes.size(); ++i) {
            const std::string& verdict = row[10 + i];
            CAPTURE(row[0]);
            CAPTURE(meshes[i]);
            CAPTURE(verdict);
            std::set<std::string> expected;
            for (const std::string& part : split(verdict, ", ")) {
                const std::string word = part.substr(0, part.find(' '));
                if (word != "ok" && word[0] != '(') {
                    expected.insert(word);
                }
            }
            const CheckedJob result = check_on(data + "configs/" + row[0] + ".json", meshes[i],
                                               {"partition_axis.hidden_state_axis=null"}, false);
            INFO(text_of(result.checked));
            std::set<std::string> refused = refused_dimensions(result.checked);
            if (row[9].empty()) {
                refused.erase("vocab");  // not in the file: the table knows none, the planner takes the family's
            }
            CHECK(refused == expected);
            ++compared;
        }
    }
    CHECK(compared > 300);
}

TEST_CASE("every broken file has its error, at its place") {
    std::set<std::string> listed;
    for (const auto& row : read_table("configs_bad.tsv", 4)) {
        CAPTURE(row[0]);
        listed.insert(row[0]);
        const CheckedJob result = check_on(data + "configs_bad/" + row[0] + ".json", "tp=1");
        INFO(text_of(result.checked));
        CHECK(result.planned.has_value() == (row[1] == "plan"));
        if (row[1] != "plan") {
            CHECK(has(result.checked, row[1], row[3], row[2]));
            CHECK(result.checked.error_count() == 1);
        } else if (row[3] != "-") {
            CHECK(has(result.checked, row[3], "-"));
        }
    }
    CHECK(listed == json_files(data + "configs_bad"));
}

TEST_CASE("huge jobs are answered, without overflow and without a loop over devices") {
    const std::string model =
        R"({"model_type": "llama", "hidden_size": 1099511627776, "intermediate_size": 1099511627776,
        "num_attention_heads": 1048576, "num_key_value_heads": 1048576, "num_hidden_layers": 10000,
        "head_dim": 64, "vocab_size": 1099511627776})";
    const std::string small = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 192,
        "num_attention_heads": 8, "num_hidden_layers": 10000, "vocab_size": 256})";
    CHECK(has(check_text(model, "huge.json", {.mesh = "tp=1"}).checked, "SP2005", "-"));
    CHECK(check_text(small, "layers.json", {.mesh = "tp=2"}).planned);
    const CheckedJob many = check_text(small, "devices.json", {.mesh = "dp=1073741824,tp=2"});
    CHECK(has(many.checked, "SP4003", "batch_size 1"));
}
