#include "config/document.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

using namespace shardplan;
using namespace std::string_literals;
using config::parse_document;

namespace {

/// "CODE line:column message" of each diagnostic.
std::vector<std::string> problems(std::string_view text, const config::Limits& limits = {}) {
    diag::Diagnostics diagnostics;
    const auto document = parse_document(text, "job.json", diagnostics, limits);
    CHECK(document.has_value() == !diagnostics.has_errors());
    std::vector<std::string> result;
    for (const diag::Diagnostic& d : diagnostics.all()) {
        REQUIRE(d.span);
        CHECK(d.span->file == "job.json");
        result.push_back(fmt::format("{} {}:{} {}", d.code, d.span->line, d.span->column, d.message));
    }
    return result;
}

std::string shown(const diag::SourceSpan& span) {
    return fmt::format("{}:{}-{}:{}", span.line, span.column, span.end_line, span.end_column);
}

struct BrokenText {
    std::string text;
    std::string expected;
};

const std::vector<BrokenText> broken_texts = {
    {"", "SP1002 1:1 the file is empty"},
    {" \n ", "SP1002 1:1 the file holds only white space"},
    {"\xef\xbb\xbf\xef\xbb\xbf[[][]]", "SP1002 1:1 the text begins with two byte order marks"},
    {"{\n  \"a\": 1,\n}", "SP1002 2:9 trailing comma before '}'"},
    {"[1, 2, ]", "SP1002 1:6 trailing comma before ']'"},
    {"{ // small\n}", "SP1002 1:3 comments are not allowed in JSON"},
    {"{\"a\": 1 # x\n}", "SP1002 1:9 comments are not allowed in JSON"},
    {"{\"vocab\": NaN}", "SP1002 1:11 'NaN' is not a number in JSON"},
    {"{\"vocab\": -Infinity}", "SP1002 1:11 '-Infinity' is not a number in JSON"},
    {"{\"a\": True}", "SP1002 1:7 'True' is not a JSON value"},
    {"{\n \"hidden\": CONFIG_SIZE,\n \"b\": 1}", "SP1002 2:12 'CONFIG_SIZE' is not a JSON value"},
    {"{\"a\": ${SIZE}}", "SP1002 1:7 '$' is not a JSON value"},
    {"{\"a\": 'x'}", "SP1002 1:7 strings need double quotes"},
    {"{a: 1}", "SP1002 1:2 a key needs double quotes, found 'a'"},
    {"{\"a\": 1, 2}", "SP1002 1:10 a key needs double quotes, found '2'"},
    {"{\"a\" 1}", "SP1002 1:6 expected ':' after the key, found '1'"},
    {"{\"a\": }", "SP1002 1:7 expected a value, found '}'"},
    {"{\"a\":: 1}", "SP1002 1:6 expected a value, found ':'"},
    {"[1,,2]", "SP1002 1:4 expected a value, found ','"},
    {"{\"a\": 1\n \"b\": 2}", "SP1002 2:2 expected ',' or '}' before '\"'"},
    {"[1 2]", "SP1002 1:4 expected ',' or ']' before '2'"},
    {"[1}", "SP1002 1:3 '}' cannot close an array"},
    {"{\"a\": 1]", "SP1002 1:8 ']' cannot close an object"},
    {"[01]", "SP1002 1:2 '01' is not a number in JSON"},
    {"[0x10]", "SP1002 1:2 '0x10' is not a number in JSON"},
    {"[1.]", "SP1002 1:2 '1.' is not a number in JSON"},
    {"[.5]", "SP1002 1:2 '.5' is not a number in JSON"},
    {"[+1]", "SP1002 1:2 '+1' is not a number in JSON"},
    {"[1e]", "SP1002 1:2 '1e' is not a number in JSON"},
    {"[-]", "SP1002 1:2 '-' is not a number in JSON"},
    {"[1, 1e999]", "SP1006 1:5 the number does not fit in 64-bit floating point"},
    {"{}\n{}", "SP1002 2:1 text after the document: '{'"},
    {"{\n \"a\": [1,\n",
     "SP1002 3:1 unexpected end of the document: the array opened at line 2, column 7 is not closed"},
    {"{\"a\"", "SP1002 1:5 unexpected end of the document: the object opened at line 1, column 1 is not closed"},
    {"{\"a\": \"xyz", "SP1002 1:7 the string that begins here is not closed"},
    {"{\"a\": \"x\n\"}", "SP1002 1:7 the string is not closed before the end of the line"},
    {"[\"a\tb\"]", "SP1002 1:4 control character 0x09 in a string"},
    {"[\"a\\xb\"]", "SP1002 1:5 invalid escape in a string"},
    {"[\"\\ud800\"]", "SP1002 1:9 invalid escape in a string"},
    {"[\"\xc3\xa9\", \xe2\x82\xac]", "SP1002 1:7 '\xe2\x82\xac' is not a JSON value"},
    {"[\"\xc3\"]", "SP1002 1:3 byte 0xc3 at offset 2 is not valid UTF-8"},
    {"[\"\xed\xa0\x80\"]", "SP1002 1:3 byte 0xed at offset 2 is not valid UTF-8"},
    {"[\"\xc0\x80\"]", "SP1002 1:3 byte 0xc0 at offset 2 is not valid UTF-8"},
    {"{\0\"\0a\0"s, "SP1002 1:1 the text is UTF-16LE, not UTF-8"},
    {"\xfe\xff\0{"s, "SP1002 1:1 the text is UTF-16BE, not UTF-8"},
    {"<<<<<<< HEAD\n{}", "SP1002 1:1 this is the mark of a conflict that a merge left behind"},
    {"<!DOCTYPE html><html></html>", "SP1002 1:1 this is not JSON; it looks like a web page or XML"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:9a\n",
     "SP1002 1:1 this is a Git LFS pointer, not the file itself"},
    {"nul", "SP1002 1:1 'nul' is not a JSON value"},
};

}  // namespace

TEST_CASE("broken texts are named with the place where they break") {
    for (const BrokenText& row : broken_texts) {
        CAPTURE(row.text);
        const auto found = problems(row.text);
        REQUIRE(found.size() == 1);
        CHECK(found[0] == row.expected);
    }
}

TEST_CASE("duplicate keys are all reported, with both places") {
    const auto found = problems("{\n  \"size\": 1,\n  \"b\": {\"x\": 1, \"x\": 2},\n  \"size\": 2\n}");
    REQUIRE(found.size() == 2);
    CHECK(found[0] == "SP1003 3:17 key \"x\" stands twice in one object; the first is at line 3, column 9");
    CHECK(found[1] == "SP1003 4:3 key \"size\" stands twice in one object; the first is at line 2, column 3");
    CHECK(problems("{\"a\": {\"x\": 1}, \"b\": {\"x\": 1}}").empty());
    CHECK(problems("{\"\\u0061\": 1, \"a\": 2}").size() == 1);
}

TEST_CASE("limits on depth, size, values and pointers") {
    CHECK(problems(std::string(200000, '[')) == std::vector<std::string>{"SP1009 1:65 nested deeper than 64 levels"});
    CHECK(problems(std::string(64, '[') + std::string(64, ']')).empty());
    config::Limits limits;
    limits.values = 3;
    CHECK(problems("[1,2]", limits).empty());
    CHECK(problems("[1,2,3]", limits) == std::vector<std::string>{"SP1009 1:6 the document has more than 3 values"});
    limits = {};
    limits.bytes = 4;
    CHECK(problems("[10]", limits).empty());
    CHECK(problems("[100]", limits) == std::vector<std::string>{"SP1009 1:1 the document has 5 bytes, more than 4"});
    limits = {};
    limits.pointer_bytes = 100;
    CHECK(problems("{\"" + std::string(40, 'k') + "\": [1,2,3]}", limits).size() == 1);
}

TEST_CASE("the tree keeps order, pointers and kinds of numbers") {
    diag::Diagnostics diagnostics;
    const auto document = parse_document(
        "\xef\xbb\xbf{\"z\": [1, 2.0, -0, 9223372036854775807, 9223372036854775808, "
        "99999999999999999999999], \"a/b~\": {\"\": null}, \"s\": \"\\u00e9\"}\r\n",
        "x", diagnostics);
    REQUIRE(document);
    const auto& members = *document->root.object();
    REQUIRE(members.size() == 3);
    CHECK(members[0].first == "z");
    const auto& numbers = *members[0].second.array();
    CHECK(*numbers[0].integer() == 1);
    CHECK(numbers[1].integer() == nullptr);
    CHECK(*numbers[1].real() == 2.0);
    CHECK(*numbers[2].integer() == 0);
    CHECK(*numbers[3].integer() == INT64_MAX);
    CHECK(std::get<model::ConfigValue::Huge>(numbers[4].data).text == "9223372036854775808");
    CHECK(std::get<model::ConfigValue::Huge>(numbers[5].data).text == "99999999999999999999999");
    CHECK(numbers[5].pointer == "/z/5");
    CHECK(members[1].second.pointer == "/a~1b~0");
    CHECK((*members[1].second.object())[0].second.pointer == "/a~1b~0/");
    CHECK((*members[1].second.object())[0].second.is_null());
    CHECK(*members[2].second.string() == "\xc3\xa9");
}

TEST_CASE("every value and key has its place, in code points") {
    diag::Diagnostics diagnostics;
    const auto document = parse_document(
        "{\r\n \"\xc3\xa9\": \"\xe2\x82\xac\\\"\", \"n\": -1.5e+3 ,\n \"o\" : { \"x\": "
        "[true, false,null]\n } }",
        "x", diagnostics);
    REQUIRE(document);
    CHECK(shown(document->span("/\xc3\xa9")) == "2:7-2:12");
    CHECK(shown(document->key_span("/\xc3\xa9")) == "2:2-2:5");
    CHECK(shown(document->span("/n")) == "2:19-2:26");
    CHECK(shown(document->span("/o")) == "3:8-4:3");
    CHECK(shown(document->key_span("/o")) == "3:2-3:5");
    CHECK(shown(document->span("/o/x/1")) == "3:22-3:27");
    CHECK(shown(document->span("/o/x/2")) == "3:28-3:32");
    CHECK(shown(document->key_span("/o/x/2")) == "3:28-3:32");
    CHECK(shown(document->span("/o/missing/deep")) == "3:8-3:9");
    CHECK(shown(document->span("")) == "1:1-1:2");
}

TEST_CASE("spans are attached by pointer; those already set stay") {
    diag::Diagnostics diagnostics;
    const auto document = parse_document("{\"a\": {\"b\": 1}}", "x", diagnostics);
    REQUIRE(document);
    diagnostics.report("SP1005", "type", "/a/b");
    diagnostics.report("SP1004", "key", "/a/b");
    diagnostics.report("SP1005", "elsewhere");
    diagnostics.all().back().span = diag::SourceSpan{"other", 7, 7, 7, 7};
    config::attach_spans(diagnostics, *document);
    CHECK(shown(*diagnostics.all()[0].span) == "1:13-1:14");
    CHECK(shown(*diagnostics.all()[1].span) == "1:8-1:11");
    CHECK(diagnostics.all()[2].span->file == "other");
}

TEST_CASE("pointers and places can start below a root pointer") {
    diag::Diagnostics diagnostics;
    const auto document = parse_document("[5]", "<--set a.b>", diagnostics, {}, "/a/b");
    REQUIRE(document);
    CHECK((*document->root.array())[0].pointer == "/a/b/0");
    CHECK(shown(document->span("/a/b/0")) == "1:2-1:3");
}
