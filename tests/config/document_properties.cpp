// The reader against nlohmann's own parser on damaged documents: same verdict, and always a place inside the text.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "config/document.h"

using namespace shardplan;

namespace {

const std::string sample = R"({
  "model": {"hidden_size": 64, "eps": 1e-05, "big": 123456789012345678901234, "names": ["a", "\u00e9\\", "é€😀"]},
  "mesh": {"axes": {"dp": -1, "tp": 2.50}, "none": null},
  "flags": [true, false, [], {}, ""]
})";

std::string damaged(std::mt19937& random) {
    static const std::string alphabet = "{}[]\":,\\ \n0129.-+eEtfnul/'#\xc3\x01";
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::string text = sample;
    const std::size_t edits = below(3) + 1;
    for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
        const std::size_t at = below(text.size());
        switch (below(4)) {
            case 0: text.erase(at, 1 + below(3)); break;
            case 1: text.insert(at, 1, alphabet[below(alphabet.size())]); break;
            case 2: text[at] = alphabet[below(alphabet.size())]; break;
            default: text.resize(at);
        }
    }
    return text;
}

void check_span(const diag::Diagnostic& d, const std::string& text) {
    REQUIRE(d.span);
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    CHECK(d.span->line >= 1);
    CHECK(d.span->column >= 1);
    CHECK(d.span->end_line <= lines);
    CHECK((d.span->line < d.span->end_line ||
           (d.span->line == d.span->end_line && d.span->column <= d.span->end_column)));
    CHECK_FALSE(d.message.empty());
}

}  // namespace

TEST_CASE("damaged documents get the verdict of the JSON grammar") {
    std::mt19937 random(20240601);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::string text = damaged(random);
        CAPTURE(text);
        diag::Diagnostics diagnostics;
        const auto document = config::parse_document(text, "x", diagnostics);
        const bool only_duplicates = std::all_of(diagnostics.all().begin(), diagnostics.all().end(),
                                                 [](const diag::Diagnostic& d) { return d.code == "SP1003"; });
        CHECK((document.has_value() || only_duplicates) == nlohmann::json::accept(text));
        for (const diag::Diagnostic& d : diagnostics.all()) {
            check_span(d, text);
        }
        refused += document ? 0 : 1;
    }
    CHECK(refused > 5000);
    CHECK(refused < 20000);
}
