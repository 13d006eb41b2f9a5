#include "partition/required_text.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <regex>

using shardplan::partition::required_text;

TEST_CASE("the text that a pattern cannot match without") {
    struct Row {
        const char* pattern;
        const char* text;
    };
    const Row rows[] = {
        {R"(layers\.17\.mlp)", "layers.17.mlp"},
        {"lm_head", "lm_head"},
        {".*", ""},
        {"q_proj|k_proj", ""},
        {R"(mlp\.(gate|up)_proj\.weight)", "_proj.weight"},
        {"abc?d", "ab"},
        {"abc*", "ab"},
        {"abc+d", "abc"},
        {"abc{0,2}def", "def"},
        {R"(a\.*bcd)", "bcd"},
        {R"(\x41bc)", "bc"},
        {R"(\u0041bc)", "bc"},
        {R"(layers\.\d+\.up)", "layers."},
        {"[abc]xyz", "xyz"},
        {"[[:alpha:]q]xy", "xy"},
        {R"([\]a]xy)", "xy"},
        {"(?:abc)?", ""},
        {"(a(b|c)[)]d)ef", "ef"},
        {"^model$", "model"},
        {"", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.pattern);
        CHECK(required_text(row.pattern) == row.text);
    }
}

TEST_CASE("whatever a pattern matches contains its required text") {
    const bool good = rc::check("required text", [] {
        const auto atom = rc::gen::elementOf(std::vector<std::string>{
            "a",     "b",      "ab",   R"(\.)",   ".",   "[ab]", "(a|b)", "(?:ab)",          "a?",       "b*", "a+",
            R"(\w)", "b{0,1}", "[^a]", R"(\x61)", "a|b", "^",    "$",     R"([[:alpha:]b])", "(a[)]|b)?"});
        std::string pattern;
        for (const std::string& part : *rc::gen::resize(6, rc::gen::container<std::vector<std::string>>(atom))) {
            pattern += part;
        }
        std::string name;
        for (const char c :
             *rc::gen::resize(8, rc::gen::container<std::vector<char>>(rc::gen::element('a', 'b', '.', ')')))) {
            name += c;
        }
        std::regex regex;
        try {
            regex = std::regex(pattern);
        } catch (const std::regex_error&) {
            RC_DISCARD("not a pattern");
        }
        if (std::regex_search(name, regex)) {
            RC_ASSERT(name.find(required_text(pattern)) != std::string::npos);
        }
    });
    CHECK(good);
}
