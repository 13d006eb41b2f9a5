#include "config/python_numbers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "config/job_reader.h"

using namespace shardplan;

namespace {

config::Limits lenient() {
    config::Limits limits;
    limits.python_numbers = true;
    return limits;
}

std::string reported(const std::string& text, const std::string& model) {
    diag::Diagnostics diagnostics;
    const auto document = config::parse_document(text, "x", diagnostics, lenient());
    REQUIRE(document);
    config::report_python_numbers(*document, model, diagnostics);
    config::attach_spans(diagnostics, *document);
    std::string result;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        result += d.code + " " + std::to_string(d.span->line) + ":" + std::to_string(d.span->column) + "-" +
                  std::to_string(d.span->end_column) + " " + d.message.substr(0, d.message.find(' ')) + "; ";
    }
    return result;
}

}  // namespace

TEST_CASE("NaN and Infinity are numbers where the reader is told so, and keep every place") {
    diag::Diagnostics diagnostics;
    const auto document = config::parse_document(
        R"({"a": [NaN, -Infinity ,0, Infinity], "s\"": "NaN, Infinity", "z": {"b":NaN}, "last": true})", "x",
        diagnostics, lenient());
    REQUIRE(document);
    const auto& numbers = *document->root.find("a")->array();
    CHECK(std::isnan(*numbers[0].real()));
    CHECK(*numbers[1].real() == -INFINITY);
    CHECK(*numbers[2].integer() == 0);
    CHECK(*numbers[3].real() == INFINITY);
    CHECK(*document->root.find("s\"")->string() == "NaN, Infinity");
    CHECK(std::isnan(*document->root.find("z")->find("b")->real()));
    CHECK(document->span("/a/1").column == 13);
    CHECK(document->span("/a/1").end_column == 22);
    CHECK(document->span("/last").column == 86);
}

TEST_CASE("other words stay errors, at their place") {
    for (const char* text : {"[NaNs]", "[nan]", "[+NaN]", "[-NaN]", "[Inf]", "[Infinity0]", "[1 NaN]", "{NaN: 1}",
                             "[xNaN]", "[NaN", "[\"NaN]"}) {
        CAPTURE(text);
        diag::Diagnostics diagnostics;
        CHECK_FALSE(config::parse_document(text, "x", diagnostics, lenient()));
        REQUIRE(diagnostics.all().size() == 1);
        CHECK(diagnostics.all().front().code == "SP1002");
    }
    diag::Diagnostics strict;
    CHECK_FALSE(config::parse_document("[NaN]", "x", strict));
}

TEST_CASE("they are a warning in a model and an error elsewhere") {
    const std::string text = R"({"model": {"a": NaN}, "models": -Infinity})";
    CHECK(reported(text, "/model") == "SP1010 1:17-20 'NaN'; SP1002 1:33-42 '-Infinity'; ");
    CHECK(reported(text, "") == "SP1010 1:17-20 'NaN'; SP1010 1:33-42 '-Infinity'; ");
    CHECK(reported(R"({"model": 1e300, "s": "NaN"})", "") == "");
    std::string many = "[NaN";
    for (int i = 0; i < 50; ++i) {
        many += ",NaN";
    }
    CHECK(reported(many + "]", "").size() < 50 * 20);
}

TEST_CASE("a needed field refuses them") {
    const std::string job = R"({"model": {"model_type": "llama", "hidden_size": SIZE, "intermediate_size": 64,
        "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 64, "rms_norm_eps": EPS},
        "mesh": {"axes": {"tp": 1}}})";
    for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
        for (const auto& [size, eps] : {std::pair<std::string, std::string>{word, "1e-5"}, {"64", word}}) {
            std::string text = job;
            text.replace(text.find("SIZE"), 4, size);
            text.replace(text.find("EPS"), 3, eps);
            CAPTURE(text);
            diag::Diagnostics diagnostics;
            CHECK_FALSE(config::read_job({"job.json", text, ""}, {}, diagnostics));
            CHECK(diagnostics.error_count() == 1);
            CHECK(diagnostics.all().back().message.find(std::string("not ") + word) != std::string::npos);
        }
    }
}
